/* Predicts with a model from C: predict MODEL.safetensors < samples
   Samples lie one behind the other on standard input: bytes of images, or floats of rows. Prints a class a
   line. cc -Iinclude examples/predict.c -Lbuild/release -lbitfed -o predict */
#include <stdio.h>
#include <stdlib.h>

#include "bitfed.h"

int main(int argc, char** argv) {
  bitfed_model* model;
  bitfed_input input;
  size_t size;
  void* sample;
  int status = 0;
  if (argc != 2) {
    fprintf(stderr, "usage: predict MODEL.safetensors < samples\n");
    return 2;
  }
  model = bitfed_open(argv[1]);
  if (model == NULL) {
    fprintf(stderr, "predict: %s\n", bitfed_error());
    return 2;
  }
  input = bitfed_input_of(model);
  size = input.columns > 0 ? sizeof(float) : 1;
  sample = malloc(input.inputs * size);
  while (status == 0 && sample != NULL && fread(sample, size, input.inputs, stdin) == input.inputs) {
    uint16_t label = 0;
    status = input.columns > 0 ? bitfed_predict_numbers(model, sample, 1, &label, NULL)
                               : bitfed_predict_pixels(model, sample, 1, &label, NULL);
    if (status == 0) printf("%s\n", bitfed_class_name(model, label));
  }
  if (status != 0) fprintf(stderr, "predict: %s\n", bitfed_error());
  free(sample);
  bitfed_close(model);
  return status == 0 ? 0 : 1;
}
