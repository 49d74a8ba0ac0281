#include "bitfed/federated/upload_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

constexpr const char* kSettings = "seed = 1\nepochs = 30\n";

ClientResult result(uint32_t client) {
  return {client, {1, 2, 3, static_cast<uint8_t>(client)}, 40, 1200, 2.5};
}

class UploadStoreTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  UploadStore store_{folder_.path()};
};

TEST_F(UploadStoreTest, GivesBackWhatWasPut) {
  store_.put(3, result(7), kSettings);
  const auto found = store_.find(3, 7, kSettings);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->client, 7u);
  EXPECT_EQ(found->upload, (Bytes{1, 2, 3, 7}));
  EXPECT_EQ(found->samples, 40u);
  EXPECT_EQ(found->trained_samples, 1200u);
  EXPECT_EQ(found->train_seconds, 2.5);
}

TEST_F(UploadStoreTest, NothingWhereNothingWasPut) {
  EXPECT_FALSE(store_.find(3, 7, kSettings));
  EXPECT_FALSE(store_.has_round(3));
  store_.put(3, result(7), kSettings);
  EXPECT_TRUE(store_.has_round(3));
  EXPECT_FALSE(store_.find(3, 8, kSettings));
  EXPECT_FALSE(store_.find(2, 7, kSettings));
}

TEST_F(UploadStoreTest, OtherSettingsAreRefusedWithTheDifference) {
  store_.put(1, result(0), kSettings);
  EXPECT_THAT(error_text([&] { store_.find(1, 0, "seed = 1\nepochs = 10\n"); }),
              HasSubstr("made with other settings: 'epochs = 30' there, 'epochs = 10' here"));
}

TEST_F(UploadStoreTest, PutReplaces) {
  store_.put(1, result(0), kSettings);
  ClientResult again = result(0);
  again.upload = {9};
  store_.put(1, again, "other\n");
  EXPECT_EQ(store_.find(1, 0, "other\n")->upload, Bytes{9});
}

TEST_F(UploadStoreTest, RemovesOneRound) {
  store_.put(1, result(0), kSettings);
  store_.put(2, result(0), kSettings);
  store_.remove_round(1);
  store_.remove_round(5);  // no such round
  EXPECT_FALSE(store_.has_round(1));
  EXPECT_TRUE(store_.find(2, 0, kSettings).has_value());
}

// The files of one upload: the upload's, then the note's.
std::pair<fs::path, fs::path> files_in(const fs::path& folder) {
  std::pair<fs::path, fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".safetensors") files.first = entry.path();
    if (entry.path().extension() == ".json") files.second = entry.path();
  }
  return files;
}

// What a crash between the two files leaves counts as nothing.
TEST_F(UploadStoreTest, AnUploadWithoutNoteIsNone) {
  store_.put(1, result(0), kSettings);
  fs::remove(files_in(folder_.path()).second);
  EXPECT_FALSE(store_.find(1, 0, kSettings));
}

TEST_F(UploadStoreTest, DamageIsFound) {
  store_.put(1, result(0), kSettings);
  const auto [upload, note] = files_in(folder_.path());
  const std::string good = read_text_file(note);

  write_file_atomically(upload, Bytes{1, 2, 3, 1});
  EXPECT_THAT(error_text([&] { store_.find(1, 0, kSettings); }), HasSubstr("digest"));
  write_file_atomically(upload, Bytes{1, 2, 3});
  EXPECT_THAT(error_text([&] { store_.find(1, 0, kSettings); }), HasSubstr("digest"));
  fs::remove(upload);
  EXPECT_THAT(error_text([&] { store_.find(1, 0, kSettings); }), HasSubstr(upload.filename().string()));

  write_file_atomically(upload, Bytes{1, 2, 3, 0});
  for (const char* text : {"", "{", "[]", "{\"depends_on\": 3}"}) {
    write_file_atomically(note, std::string_view(text));
    EXPECT_THAT(error_text([&] { store_.find(1, 0, kSettings); }), HasSubstr(note.filename().string()))
        << text;
  }
  write_file_atomically(note, std::string_view(good).substr(0, good.size() / 2));
  EXPECT_THAT(error_text([&] { store_.find(1, 0, kSettings); }), HasSubstr("not valid JSON"));
  std::string negative = good;
  negative.replace(negative.find("40"), 2, "-1");
  write_file_atomically(note, negative);
  EXPECT_THAT(error_text([&] { store_.find(1, 0, kSettings); }),
              HasSubstr("samples: found -1, expected a count"));
}

}  // namespace
}  // namespace bitfed
