/* Prediction with a trained model, for C and whatever can call C. The answers are those of `bitfed predict`,
   bit for bit: it is the same code.

     bitfed_model *model = bitfed_open("model.safetensors");
     if (model == NULL) { fprintf(stderr, "%s\n", bitfed_error()); … }
     bitfed_predict_pixels(model, pixels, 1, &label, NULL);
     bitfed_close(model);

   Nothing is thrown and nothing printed. A model may be used by several threads at once: the memory to
   predict in is taken when it is opened, and once more only where more threads predict at once than ever
   before. But for models with method.normalise = "batch", whose scores depend on all samples of a call, no
   prediction takes any other. */
#ifndef BITFED_H
#define BITFED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define BITFED_API __attribute__((visibility("default")))
#else
#define BITFED_API
#endif

typedef struct bitfed_model bitfed_model;

/* A model from its file, or from the bytes of one; NULL where it is not what it should be. Close what was
 * opened. */
BITFED_API bitfed_model* bitfed_open(const char* path);
BITFED_API bitfed_model* bitfed_open_bytes(const void* bytes, size_t size);
BITFED_API void bitfed_close(bitfed_model* model);

/* What a sample is: bytes, `height` rows of `width` pixels of `channels`, row by row, then pixel, then
   channel; or, where height is 0, floats, the `columns` of a row of a table. `inputs` of them in all. */
typedef struct bitfed_input {
  size_t inputs;
  size_t height, width, channels;
  size_t columns;
} bitfed_input;

BITFED_API bitfed_input bitfed_input_of(const bitfed_model* model);
BITFED_API size_t bitfed_class_count(const bitfed_model* model);
BITFED_API const char* bitfed_class_name(const bitfed_model* model, size_t index); /* NULL: no such class */

/* Predicts `samples` samples that lie one behind the other, in the calling thread. Each pointer may be NULL:
   `classes` takes a class for each sample, `scores` as many scores as there are classes. 0, or -1 where
   something is wrong: the model takes the other kind of input, or memory has run out. */
BITFED_API int bitfed_predict_pixels(const bitfed_model* model, const uint8_t* pixels, size_t samples,
                                     uint16_t* classes, float* scores);
BITFED_API int bitfed_predict_numbers(const bitfed_model* model, const float* numbers, size_t samples,
                                      uint16_t* classes, float* scores);

/* What went wrong in the last call that failed in this thread, one line; "" where none has. */
BITFED_API const char* bitfed_error(void);

#ifdef __cplusplus
}
#endif
#endif
