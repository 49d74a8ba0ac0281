#include "bitfed/data/formats/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "bitfed/base/byte_io.h"
#include "bitfed/base/error.h"
#include "bitfed/base/thread_pool.h"
#include "bitfed/base/utf8.h"
#include "bitfed/data/formats/csv_reader.h"
#include "bitfed/data/formats/image.h"

namespace bitfed {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaximumBytes = uint64_t{8} << 30;  // of all images

struct ImageFile {
  fs::path path;
  std::string class_name;
  std::string person;
};

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".png" || ending == ".jpg" || ending == ".jpeg";
}

// What Windows and macOS put into folders unasked, besides hidden files.
bool is_left_behind(const std::string& name) {
  return name == "Thumbs.db" || name == "desktop.ini" || name == "__MACOSX";
}

std::vector<fs::path> folders_of(const fs::path& folder, const char* of_what) {
  std::vector<fs::path> folders = entries_of(folder);
  for (const fs::path& path : folders) {
    std::error_code code;
    if (!fs::is_directory(path, code))
      throw input_error("{}: found a file, expected a folder for each {}", path.string(), of_what);
  }
  if (folders.empty())
    throw input_error("{}: is empty, expected a folder for each {}", folder.string(), of_what);
  return folders;
}

void list_images(const fs::path& folder, const std::string& class_name, const std::string& person,
                 std::vector<ImageFile>* files) {
  const size_t before = files->size();
  for (const fs::path& path : entries_of(folder)) {
    std::error_code code;  // a link to nothing, or in a circle, is said when it is read
    const bool is_folder = fs::is_directory(path, code);
    if (is_folder || !is_image(path)) {
      throw input_error("{}: found a {} in the folder of class '{}', expected images (.png, .jpg, .jpeg)",
                        path.string(), is_folder ? "folder" : "file", class_name);
    }
    files->push_back({path, class_name, person});
  }
  if (files->size() == before)
    throw input_error("{}: holds no image, expected some of class '{}'", folder.string(), class_name);
}

std::vector<ImageFile> list_folder(const fs::path& folder, bool person_folders) {
  std::vector<ImageFile> files;
  if (!person_folders) {
    for (const fs::path& path : folders_of(folder, "class"))
      list_images(path, path.filename().string(), "", &files);
    return files;
  }
  for (const fs::path& person : folders_of(folder, "person")) {
    for (const fs::path& path : folders_of(person, "class"))
      list_images(path, path.filename().string(), person.filename().string(), &files);
  }
  return files;
}

std::map<std::string, std::string> read_people(const fs::path& path) {
  const std::string text = read_text_file(path);
  CsvReader reader(text, path.string());
  std::vector<std::string_view> fields;
  if (!reader.next(fields))
    throw input_error("{}: is empty, expected the columns file and person", path.string());
  const auto column = [&](std::string_view name) {
    const auto found = std::find(fields.begin(), fields.end(), name);
    if (found == fields.end()) throw input_error("{}: has no column '{}'", path.string(), name);
    return static_cast<size_t>(found - fields.begin());
  };
  const size_t file = column("file");
  const size_t person = column("person");
  std::map<std::string, std::string> people;
  while (reader.next(fields)) {
    if (fields.size() <= std::max(file, person))
      throw input_error("{}: line {}: {} fields, expected more", path.string(), reader.line(), fields.size());
    if (fields[person].empty())
      throw input_error("{}: line {}: found no person, expected whose {} is", path.string(), reader.line(),
                        fields[file]);
    const auto [place, is_new] = people.try_emplace(std::string(fields[file]), fields[person]);
    if (!is_new && place->second != fields[person])
      throw input_error("{}: line {}: found {} of '{}', expected '{}' as before", path.string(),
                        reader.line(), fields[file], fields[person], place->second);
  }
  return people;
}

void add_people(const fs::path& folder, const fs::path& table, std::vector<ImageFile>* files) {
  const std::map<std::string, std::string> people = read_people(table);
  for (ImageFile& file : *files) {
    const std::string relative = fs::relative(file.path, folder).generic_string();
    const auto found = people.find(relative);
    if (found == people.end()) throw input_error("{}: has no line for the file {}", table.string(), relative);
    file.person = found->second;
  }
}

// Decoded, of the size and channels that the options ask for.
std::vector<Image> decode_all(const std::vector<ImageFile>& files, const ImageFolderOptions& options) {
  std::vector<Image> images(files.size());
  ThreadPool pool;
  pool.for_ranges(files.size(), 64, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      Image image = decode_image(read_file(files[i].path), files[i].path.string());
      if (!options.size.empty()) image = resized(image, options.size[0], options.size[1]);
      if (options.channels != 0) image = with_channels(std::move(image), options.channels);
      images[i] = std::move(image);
    }
  });
  return images;
}

void check_sizes(const std::vector<ImageFile>& files, const std::vector<Image>& images) {
  for (size_t i = 1; i < images.size(); ++i) {
    if (images[i].height == images[0].height && images[i].width == images[0].width) continue;
    throw input_error(
        "{}: found an image of {} x {}, but {} is {} x {}; expected one size, or data.size = [height, width] to "
        "bring all to it",
        files[i].path.string(), images[i].height, images[i].width, files[0].path.string(), images[0].height,
        images[0].width);
  }
}

NamedSamples load_files(const std::vector<ImageFile>& files, const ImageFolderOptions& options,
                        const std::string& name) {
  std::vector<Image> images = decode_all(files, options);
  check_sizes(files, images);
  size_t channels = 1;
  for (const Image& image : images) channels = std::max(channels, image.channels);
  NamedSamples samples;
  Dataset& data = samples.data;
  data.name = name;
  data.height = images[0].height;
  data.width = images[0].width;
  data.channels = channels;
  if (data.image_bytes() > kMaximumBytes / images.size()) {
    throw input_error(
        "{}: {} images of {} x {} take more than {} bytes; expected data.size = [height, width] to "
        "make them smaller",
        name, images.size(), data.height, data.width, kMaximumBytes);
  }
  data.pixels.reserve(images.size() * data.image_bytes());
  for (size_t i = 0; i < images.size(); ++i) {
    const Image image = with_channels(std::move(images[i]), channels);
    data.pixels.append(image.pixels);
    samples.classes.push_back(files[i].class_name);
    if (!files[i].person.empty()) samples.people.push_back(files[i].person);
  }
  return samples;
}

}  // namespace

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::error_code code;
  std::vector<fs::path> entries;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || is_left_behind(name)) continue;
    const bool has_control =
        std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
    if (!is_utf8(name) || has_control)
      throw input_error("{}: holds {:?}, expected names in UTF-8 on one line", folder.string(), name);
    entries.push_back(entry.path());
  }
  if (code) throw input_error("{}: {}", folder.string(), code.message());
  std::sort(entries.begin(), entries.end());
  return entries;
}

NamedSamples load_image_folder(const fs::path& folder, const ImageFolderOptions& options) {
  std::vector<ImageFile> files = list_folder(folder, options.person_folders);
  if (!options.people.empty()) add_people(folder, options.people, &files);
  return load_files(files, options, folder.string());
}

ImageFolders find_image_folders(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder / "train", code)) return {folder, std::nullopt};
  for (const char* name : {"test", "val", "valid", "validation"}) {
    if (fs::is_directory(folder / name, code)) return {folder / "train", folder / name};
  }
  return {folder, std::nullopt};
}

bool is_tiny_imagenet(const fs::path& folder) {
  std::error_code code;
  return fs::exists(folder / "wnids.txt", code) && fs::is_directory(folder / "train", code);
}

TinyImagenet load_tiny_imagenet(const fs::path& folder, const ImageFolderOptions& options) {
  std::vector<ImageFile> train;
  for (const fs::path& path : folders_of(folder / "train", "class"))
    list_images(path / "images", path.filename().string(), "", &train);
  std::set<std::string_view> classes;
  for (const ImageFile& file : train) classes.insert(file.class_name);
  const fs::path notes = folder / "val" / "val_annotations.txt";
  const std::string text = read_text_file(notes);
  std::vector<ImageFile> test;
  for (size_t begin = 0, line = 1; begin < text.size(); ++line) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string row = text.substr(begin, end - begin);
    begin = end + 1;
    if (row.empty()) continue;
    const size_t tab = row.find('\t');
    const size_t next = row.find('\t', tab + 1);
    if (tab == std::string::npos || row.find('/') < tab)
      throw input_error("{}: line {}: expected a file, a tab and a class", notes.string(), line);
    const std::string class_name = row.substr(tab + 1, next == std::string::npos ? next : next - tab - 1);
    if (!classes.contains(class_name))
      throw input_error("{}: line {}: found class {:?}, expected a folder of train", notes.string(), line,
                        class_name);
    test.push_back({folder / "val" / "images" / row.substr(0, tab), class_name, ""});
  }
  if (test.empty()) throw input_error("{}: names no image", notes.string());
  return {load_files(train, options, (folder / "train").string()),
          load_files(test, options, (folder / "val").string())};
}

}  // namespace bitfed
