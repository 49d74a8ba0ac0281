# The public C++ interface: these headers are installed, and include no others of ours. All other headers are private.
# tests/package/find_package_test.sh builds a foreign project against them alone.
set(BITFED_PUBLIC_HEADERS
  base/error.h
  base/config.h
  base/byte_io.h
  base/thread_pool.h
  base/modular_vector.h
  base/hash/random.h
  data/dataset.h
  data/samples.h
  data/catalog/catalog.h
  data/partition/partition.h
  model/state.h
  model/model.h
  model/predictor.h
  zoo/model_file.h
  run/events.h
  run/summary.h
  run/run_folder_writer.h
  federated/method.h
  federated/privacy/summed_update.h
  federated/privacy/update_grid.h
  federated/privacy/privacy_recipe.h
  federated/evaluation.h
  federated/experiment.h
  simulation/experiment.h)
