#include "bitfed/edge/exportable.h"

#include "bitfed/base/error.h"
#include "bitfed/zoo/model_file.h"

namespace bitfed {

void check_exportable(const TsetlinModel& model, const char* format) {
  const SampleShape input = input_of_model(model);
  const Dataset prototype = empty_dataset("the model's input", input);
  for (const TsetlinMember& member : model.members()) {
    if (member.scale == 0) {
      throw input_error(
          "--format {}: the scores of this model are scaled by the span of all samples that are predicted "
          "together "
          "(method.normalise = batch), so that answers depend on the batch; train with method.normalise = "
          "training or "
          "fixed",
          format);
    }
    if (!(member_input(member) == input) || plane_count(member.booleanizer, prototype) != member.shape.planes)
      throw input_error("--format {}: the machines of this model take different inputs", format);
  }
}

}  // namespace bitfed
