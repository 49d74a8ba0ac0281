#include "bitfed/base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "bitfed/base/byte_io.h"
#include "tests/base/error_text.h"
#include "tests/base/temporary_folder.h"

namespace bitfed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kRecipe = R"(name = "test"
seed = 7
[model]
clauses = 200
rate = 0.5
fast = true
patch = [5, 3]
[data]
partition = { kind = "dirichlet", alpha = 0.1 }
)";

Config recipe(const std::string& text = kRecipe) {
  return Config::parse(text, "recipe.toml");
}

TEST(Config, ReadsWhatIsThere) {
  const Config config = recipe();
  EXPECT_EQ(config.text("name", "none"), "test");
  EXPECT_EQ(config.required_string("name"), "test");
  EXPECT_EQ(config.integer("seed", 1), 7);
  EXPECT_EQ(config.section("model").number("rate", 1, 0, 1), 0.5);
  EXPECT_EQ(config.section("model").number("clauses", 1, 0, 1e9), 200.0);  // whole numbers are numbers
  EXPECT_TRUE(config.section("model").flag("fast", false));
  EXPECT_THAT(config.section("model").integers("patch", {}, 1, 9), ElementsAre(5, 3));
  EXPECT_THAT(config.section("model").numbers("patch", {}, 1, 9), ElementsAre(5.0, 3.0));
  const std::vector<std::string> kinds = {"iid", "dirichlet"};
  EXPECT_EQ(config.section("data").section("partition").choice("kind", "iid", kinds), "dirichlet");
  EXPECT_TRUE(config.has("seed"));
  EXPECT_TRUE(config.is_string("name"));
  EXPECT_FALSE(config.is_string("seed"));
  EXPECT_FALSE(config.is_string("nothing"));
}

TEST(Config, ReadsArraysOfNumbersAndTexts) {
  const Config config = recipe("figures = [1, 2.5]\nnotes = ['a', 'b']\n");
  EXPECT_THAT(config.numbers("figures", {}, 0, 9), ElementsAre(1, 2.5));
  EXPECT_THAT(config.texts("notes"), ElementsAre("a", "b"));
  EXPECT_TRUE(config.numbers("none", {}, 0, 9).empty());
  EXPECT_TRUE(config.texts("nothing").empty());
  EXPECT_EQ(error_text([&] { config.numbers("figures", {}, 0, 2); }),
            "recipe.toml: line 1: figures: found 2.5, expected an array of numbers from 0 to 2");
  EXPECT_EQ(error_text([&] { config.texts("figures"); }),
            "recipe.toml: line 1: figures: found 1, expected an array of strings in quotes");
  EXPECT_THAT(error_text([&] { recipe("notes = 'a'").texts("notes"); }), HasSubstr("found the string 'a'"));
}

TEST(Config, GivenIsTheSameTextForTheSameValues) {
  Config plain = recipe("[data]\npartition = { kind = 'iid', alpha = 0.1 }\n[model]\nname = 'ctm'\n");
  Config other = recipe("[model]\nname = 'tm'\n[data.partition]\nalpha = 0.10\nkind = 'iid'\n");
  EXPECT_NE(plain.given(), other.given());
  const std::vector<std::string> assignments = {"model.name=ctm", "data.partition.alpha=0.1"};
  other.set_all(assignments);
  EXPECT_EQ(plain.given(), other.given());
  EXPECT_EQ(recipe(plain.given()).given(), plain.given());
  const std::vector<std::string> bad = {"model.name"};
  EXPECT_EQ(error_text([&] { plain.set_all(bad); }),
            "--set model.name: expected key=value, as in model.clauses=300");
}

TEST(Config, AbsentKeysAndTablesGiveTheDefaults) {
  const Config config = recipe();
  const Config absent = config.section("client").section("optimizer");
  const std::vector<std::string> kinds = {"sgd", "adam"};
  EXPECT_EQ(absent.text("name", "none"), "none");
  EXPECT_EQ(absent.integer("steps", -3), -3);  // a default may lie outside the range
  EXPECT_EQ(absent.number("rate", 0.25, 0, 1), 0.25);
  EXPECT_TRUE(absent.flag("nesterov", true));
  EXPECT_THAT(absent.integers("sizes", {1, 2}, 0, 9), ElementsAre(1, 2));
  EXPECT_THAT(absent.numbers("shares", {0.5}, 0, 9), ElementsAre(0.5));
  EXPECT_EQ(absent.choice("kind", "sgd", kinds), "sgd");
  EXPECT_TRUE(config.sections("stage").empty());
  EXPECT_FALSE(config.has("client"));
}

TEST(Config, WrongTypesNameLineKeyFoundAndExpected) {
  const Config config = recipe();
  const Config model = config.section("model");
  EXPECT_EQ(error_text([&] { config.text("seed", ""); }),
            "recipe.toml: line 2: seed: found 7, expected a string in quotes");
  EXPECT_EQ(
      error_text([&] { config.integer("name", 0); }),
      "recipe.toml: line 1: name: found the string 'test', expected a whole number from 0 to 2147483647");
  EXPECT_EQ(error_text([&] { model.integer("rate", 0, 0, 9); }),
            "recipe.toml: line 5: model.rate: found 0.5, expected a whole number from 0 to 9");
  EXPECT_EQ(error_text([&] { model.number("fast", 0, 0, 1); }),
            "recipe.toml: line 6: model.fast: found true, expected a number from 0 to 1");
  EXPECT_EQ(error_text([&] { model.flag("clauses", true); }),
            "recipe.toml: line 4: model.clauses: found 200, expected true or false");
  EXPECT_EQ(error_text([&] { config.text("model", ""); }),
            "recipe.toml: line 3: model: found a table, expected a string in quotes");
  EXPECT_EQ(error_text([&] { model.integer("patch", 0); }),
            "recipe.toml: line 7: model.patch: found an array, expected a whole number from 0 to 2147483647");
  EXPECT_EQ(error_text([&] { model.integers("clauses", {}, 0, 9); }),
            "recipe.toml: line 4: model.clauses: found 200, expected an array of whole numbers from 0 to 9");
  EXPECT_EQ(error_text([&] { config.section("seed"); }),
            "recipe.toml: line 2: seed: found 7, expected a table");
  EXPECT_EQ(error_text([&] { config.sections("model"); }),
            "recipe.toml: line 3: model: found a table, expected an array of tables");
  EXPECT_THAT(error_text([&] { model.sections("patch"); }),
              HasSubstr("model.patch.0: found 5, expected a table"));
}

TEST(Config, RangesIncludeTheirEnds) {
  const Config model = recipe().section("model");
  EXPECT_EQ(model.integer("clauses", 0, 200, 200), 200);
  EXPECT_EQ(model.number("rate", 0, 0.5, 0.5), 0.5);
  EXPECT_THAT(error_text([&] { model.integer("clauses", 0, 201, 300); }), HasSubstr("found 200"));
  EXPECT_THAT(error_text([&] { model.integer("clauses", 0, 0, 199); }), HasSubstr("from 0 to 199"));
  EXPECT_THAT(error_text([&] { model.number("rate", 0, 0.6, 1); }), HasSubstr("found 0.5"));
  EXPECT_THAT(error_text([&] { model.number("rate", 0, 0, 0.4); }), HasSubstr("from 0 to 0.4"));
  EXPECT_THAT(error_text([&] { model.integers("patch", {}, 4, 9); }), HasSubstr("found 3"));
  EXPECT_THAT(error_text([&] { model.numbers("patch", {}, 3.5, 9); }),
              HasSubstr("found 3, expected an array of numbers from 3.5 to 9"));
  const Config odd = recipe("x = nan\ny = inf\nz = 9223372036854775807");
  EXPECT_THAT(error_text([&] { odd.number("x", 0, 0, 1); }), HasSubstr("line 1: x: found nan"));
  EXPECT_THAT(error_text([&] { odd.number("y", 0, 0, 1); }), HasSubstr("line 2: y: found inf"));
  EXPECT_EQ(odd.integer("z", 0, 0, std::numeric_limits<int64_t>::max()), INT64_MAX);
}

TEST(Config, ChoiceAndRequiredText) {
  const Config config = recipe();
  const std::vector<std::string> kinds = {"iid", "column"};
  EXPECT_EQ(error_text([&] { config.section("data").section("partition").choice("kind", "iid", kinds); }),
            "recipe.toml: line 9: data.partition.kind: found 'dirichlet', expected one of: iid, column");
  EXPECT_EQ(error_text([&] { config.section("data").required_string("name"); }),
            "recipe.toml: data.name: missing, expected a string in quotes");
}

TEST(Config, SyntaxErrorsNameTheLine) {
  EXPECT_THAT(error_text([] { recipe("a = 1\nb = = 2\n"); }), HasSubstr("recipe.toml: line 2: "));
  EXPECT_THAT(error_text([] { recipe("a = 1\na = 2\n"); }), HasSubstr("recipe.toml: line 2: "));
  EXPECT_THAT(error_text([] { recipe("a = \"\xff\"\n"); }), HasSubstr("recipe.toml: line 1: "));
  EXPECT_THAT(error_text([] { recipe("a = " + std::string(5000, '[')); }),
              HasSubstr("recipe.toml: line 1: "));
}

TEST(Config, LoadNamesTheFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_text([&] { Config::load(folder / "none.toml"); }),
              HasSubstr("none.toml: cannot be read"));
  write_file_atomically(folder / "bad.toml", "a = [");
  EXPECT_THAT(error_text([&] { Config::load(folder / "bad.toml"); }), HasSubstr("bad.toml: line 1: "));
  write_file_atomically(folder / "good.toml", "a = 5");
  EXPECT_EQ(Config::load(folder / "good.toml").integer("a", 0), 5);
}

void read_recipe(const Config& config) {
  config.text("name", "");
  config.integer("seed", 0);
  const Config model = config.section("model");
  model.integer("clauses", 0);
  model.number("rate", 0, 0, 1);
  model.flag("fast", false);
  model.integers("patch", {}, 0, 9);
  const Config partition = config.section("data").section("partition");
  partition.text("kind", "");
  partition.number("alpha", 1, 0, 1);
}

std::string unknown_key(const std::string& text) {
  const Config config = recipe(text);
  read_recipe(config);
  return error_text([&] { config.reject_unknown_keys(); });
}

TEST(Config, UnknownKeysNameLineAndNearest) {
  EXPECT_EQ(unknown_key(kRecipe), "");
  EXPECT_EQ(unknown_key("name = \"x\"\nsede = 3"),
            "recipe.toml: line 2: sede: unknown key (did you mean 'seed'?)");
  EXPECT_EQ(unknown_key("[model]\n\nclausess = 3"),
            "recipe.toml: line 3: model.clausess: unknown key (did you mean 'clauses'?)");
  EXPECT_EQ(unknown_key("[model]\nzzzzzz = 3"),
            "recipe.toml: line 2: model.zzzzzz: unknown key (known: clauses, fast, patch, rate)");
  EXPECT_EQ(unknown_key("[data]\npartition = { aplha = 1 }"),
            "recipe.toml: line 2: data.partition.aplha: unknown key (did you mean 'alpha'?)");
  EXPECT_EQ(unknown_key("[modle]\nclauses = 3"),
            "recipe.toml: line 1: modle: unknown key (did you mean 'model'?)");
}

TEST(Config, UnknownKeyWhereNothingIsKnown) {
  const Config config = recipe("[client]\nx = 1");
  config.section("client");
  EXPECT_EQ(error_text([&] { config.reject_unknown_keys(); }), "recipe.toml: line 2: client.x: unknown key");
}

TEST(Config, SetOverridesValues) {
  Config config = recipe();
  config.set("seed", "9");
  config.set("model.rate", "0.75");
  config.set("model.fast", "false");
  config.set("model.patch", "[1, 2, 3]");
  config.set("data.partition.kind", "iid");           // a bare string
  config.set("data.partition.alpha", "1");            // into an inline table
  config.set("method.name", "\"fedtmos\"");           // quotes are welcome
  config.set("method.note", "two words, a = b # c");  // what is no value is a text
  config.set("method.empty", "");
  EXPECT_EQ(config.integer("seed", 0), 9);
  EXPECT_EQ(config.section("model").number("rate", 0, 0, 1), 0.75);
  EXPECT_FALSE(config.section("model").flag("fast", true));
  EXPECT_THAT(config.section("model").integers("patch", {}, 0, 9), ElementsAre(1, 2, 3));
  EXPECT_EQ(config.section("data").section("partition").text("kind", ""), "iid");
  EXPECT_EQ(config.section("data").section("partition").number("alpha", 0, 0, 1), 1);
  EXPECT_EQ(config.section("method").text("name", ""), "fedtmos");
  EXPECT_EQ(config.section("method").text("note", ""), "two words, a = b # c");
  EXPECT_EQ(config.section("method").text("empty", "x"), "");
  EXPECT_EQ(config.section("model").integer("clauses", 0), 200);  // the rest stays
}

TEST(Config, SetReplacesATable) {
  Config config = recipe();
  config.set("data.partition", "{ kind = \"column\", name = \"site\" }");
  const Config partition = config.section("data").section("partition");
  EXPECT_EQ(partition.text("kind", ""), "column");
  EXPECT_EQ(partition.text("name", ""), "site");
  EXPECT_FALSE(partition.has("alpha"));
}

TEST(Config, ErrorsOfOverridesNameTheOption) {
  Config config = recipe();
  config.set("seed", "many");
  config.set("data.partition", "{ kid = \"iid\" }");
  config.set("modle.clauses", "3");
  EXPECT_EQ(error_text([&] { config.integer("seed", 0, 0, 9); }),
            "--set seed: found the string 'many', expected a whole number from 0 to 9");
  config.text("name", "");
  config.section("data").section("partition").text("kind", "");
  config.section("model");
  EXPECT_EQ(config.section("data").section("partition").where("kid"), "--set data.partition.kid");
  EXPECT_THAT(error_text([&] { config.reject_unknown_keys(); }), HasSubstr("--set data.partition.kid"));
  Config other = recipe("");
  other.set("modle.clauses", "3");
  other.section("model");
  EXPECT_EQ(error_text([&] { other.reject_unknown_keys(); }),
            "--set modle: unknown key (did you mean 'model'?)");
}

// A recipe for one method and model, read as if for another that shares only `server_models`.
Config replaced_recipe() {
  return recipe(R"([method]
name = "fedtmos"
server_models = 4
clusters = 30
[model]
name = "ctm"
patch = [5, 5]
[[model.member]]
clauses = 10
[data]
file = "table.csv"
partition = { kind = "dirichlet", alpha = 0.1 }
)");
}

void read_replaced(const Config& config) {
  config.section("method").text("name", "");
  config.section("method").number("server_models", 3, 1, 9);
  config.section("model").text("name", "");
  config.section("data").has("name");
  config.section("data").has("file");
  config.section("data").section("partition").text("kind", "");
}

TEST(Config, KeysOfWhatAnOverrideReplacedAreDropped) {
  Config config = replaced_recipe();
  config.set("method.name", "fedtm-bank");
  config.set("model.name", "cnn4");
  config.set("data.partition.kind", "iid");
  read_replaced(config);
  EXPECT_TRUE(config.section("method").is_replaced());
  EXPECT_THAT(config.reject_unknown_keys(),
              ElementsAre("data.partition.alpha", "method.clusters", "model.member", "model.patch"));
  EXPECT_THAT(config.resolved(), HasSubstr("server_models = 4"));
  EXPECT_THAT(config.resolved(), Not(HasSubstr("clusters")));
}

TEST(Config, AWholeTableMayReplaceAnother) {
  Config config = replaced_recipe();
  config.set("method", "{ name = \"fedtm-bank\" }");
  config.set("model", "{ name = \"cnn4\" }");
  config.set("data", "{ name = \"mnist\" }");
  read_replaced(config);
  EXPECT_TRUE(config.section("model").is_replaced());
  EXPECT_THAT(config.reject_unknown_keys(), ElementsAre());
}

TEST(Config, NothingIsDroppedWhereTheOverrideSaysTheSame) {
  Config config = replaced_recipe();
  config.set("method.name", "fedtmos");
  config.set("model.name", "cnn4");
  config.set("data.partition.kind", "iid");
  read_replaced(config);
  EXPECT_FALSE(config.section("method").is_replaced());
  EXPECT_THAT(error_text([&] { config.reject_unknown_keys(); }),
              HasSubstr("recipe.toml: line 4: method.clusters: unknown key"));
}

TEST(Config, OverridesMustBeReadEvenInReplacedTables) {
  Config config = replaced_recipe();
  config.set("method.name", "fedtm-bank");
  config.set("method.server_model", "2");
  config.set("model.name", "cnn4");
  config.set("data.partition.kind", "iid");
  read_replaced(config);
  EXPECT_EQ(error_text([&] { config.reject_unknown_keys(); }),
            "--set method.server_model: unknown key (did you mean 'server_models'?)");
}

// Mistyped: a table within the one that was replaced has a reader of its own.
TEST(Config, UnknownKeysWithinReplacedTablesStayErrors) {
  Config config = recipe("[data]\nname = 'mnist'\npartition = { kind = 'dirichlet', aplha = 0.1 }\n");
  config.set("data.name", "svhn");
  read_replaced(config);
  config.section("data").section("partition").number("alpha", 1, 0, 1);
  EXPECT_EQ(error_text([&] { config.reject_unknown_keys(); }),
            "recipe.toml: line 3: data.partition.aplha: unknown key (did you mean 'alpha'?)");
}

TEST(Config, KeysElsewhereMayBeDropped) {
  const std::vector<std::string> client = {"client"};
  const std::vector<std::string> booleanize = {"booleanize"};
  Config config = recipe("[data]\nbooleanize = { level = 75 }\n[client]\nbatch = 4\n");
  config.section("client");
  config.section("data");
  config.allow_dropping(client);
  config.section("data").allow_dropping(booleanize);
  EXPECT_THAT(config.reject_unknown_keys(), ElementsAre("client.batch", "data.booleanize"));
  config.set("client.epoch", "3");
  EXPECT_THAT(error_text([&] { config.reject_unknown_keys(); }),
              HasSubstr("--set client.epoch: unknown key"));
}

TEST(Config, PermittedKeysAreDroppedOnlyFromReplacedTables) {
  const std::vector<std::string> clusters = {"clusters"};
  Config config = recipe("[method]\nname = 'fedtmos'\nclusters = 30\n[federation]\nclusters = 3\n");
  config.section("method").text("name", "");
  config.section("method").permit(clusters);
  config.section("federation").permit(clusters);
  config.allow_dropping(std::vector<std::string>{"federation"});
  EXPECT_THAT(config.reject_unknown_keys(), ElementsAre());
  config.set("method.name", "fedtm-bank");
  EXPECT_THAT(config.reject_unknown_keys(), ElementsAre("method.clusters"));
}

TEST(Config, NameAndFileReplaceEachOther) {
  Config config = replaced_recipe();
  config.set("data.name", "mnist");
  EXPECT_TRUE(config.section("data").has("name"));
  EXPECT_FALSE(config.section("data").has("file"));
  EXPECT_TRUE(config.section("data").is_replaced());
  config.set("data.file", "other.csv");  // two overrides: for the reader to judge
  EXPECT_TRUE(config.section("data").has("name"));
  EXPECT_TRUE(config.section("data").has("file"));
  config.set("name", "another run");  // of the document, not of a table
  EXPECT_FALSE(config.is_replaced());
}

TEST(Config, SetRefusesWhatNamesNoKey) {
  Config config = recipe();
  EXPECT_THAT(error_text([&] { config.set("", "1"); }), HasSubstr("empty part"));
  EXPECT_THAT(error_text([&] { config.set("model..x", "1"); }), HasSubstr("empty part"));
  EXPECT_THAT(error_text([&] { config.set("model.", "1"); }), HasSubstr("empty part"));
  EXPECT_THAT(error_text([&] { config.set("seed.x", "1"); }), HasSubstr("seed is not a table"));
  EXPECT_THAT(error_text([&] { config.set("model.patch.0", "1"); }), HasSubstr("element of an array"));
  EXPECT_THAT(error_text([&] { config.set("model.patch.x.y", "1"); }), HasSubstr("x is not a table"));
  EXPECT_THAT(error_text([&] { config.set("model.patch.99999999999999999999.y", "1"); }),
              HasSubstr("is not a table"));
  EXPECT_THAT(error_text([&] { config.set("seed", "1\nname = 2"); }), HasSubstr("is not one value"));
}

constexpr const char* kStages = R"([[stage]]
units = 10
[[stage]]
units = 20
rate = 0.5
)";

TEST(Config, ArraysOfTables) {
  Config config = recipe(kStages);
  config.set("stage.1.units", "30");
  const std::vector<Config> stages = config.sections("stage");
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].integer("units", 0), 10);
  EXPECT_EQ(stages[0].number("rate", 0.25, 0, 1), 0.25);
  EXPECT_EQ(stages[1].integer("units", 0), 30);
  EXPECT_EQ(error_text([&] { config.reject_unknown_keys(); }),
            "recipe.toml: line 5: stage.1.rate: unknown key (known: units)");
  EXPECT_EQ(stages[1].number("rate", 0.25, 0, 1), 0.5);
  EXPECT_EQ(error_text([&] { config.reject_unknown_keys(); }), "");

  const std::vector<Config> again = recipe(config.resolved()).sections("stage");
  ASSERT_EQ(again.size(), 2u);
  EXPECT_EQ(again[0].integer("units", 0), 10);
  EXPECT_EQ(again[0].number("rate", 0, 0, 1), 0.25);
  EXPECT_EQ(again[1].integer("units", 0), 30);
}

TEST(Config, ResolvedParsesBackToTheSameValues) {
  const std::vector<double> numbers = {0.1,    1.0 / 3, 1e-300, 1e22,    -0.0,    3,
                                       5e-324, 1e300,   0.5,    1234567, INFINITY};
  const std::vector<std::string> texts = {
      "", "plain", "with 'both' \"quotes\"", "a\\b", "two\nlines\n", "tab\t", "über", "\x01", "[x] = # no"};
  const Config config = recipe("");
  for (size_t i = 0; i < numbers.size(); ++i) {
    config.section("n").number("k" + std::to_string(i), numbers[i], -INFINITY, INFINITY);
  }
  for (size_t i = 0; i < texts.size(); ++i) config.section("t").text("k" + std::to_string(i), texts[i]);
  config.section("i").integers("list", {1, -2, INT64_MAX, INT64_MIN}, 0, 0);
  config.section("i").integers("empty", {}, 0, 0);
  config.flag("yes", true);

  const Config again = recipe(config.resolved());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const double found = again.section("n").number("k" + std::to_string(i), -1, -INFINITY, INFINITY);
    EXPECT_EQ(found, numbers[i]);
    EXPECT_EQ(std::signbit(found), std::signbit(numbers[i]));
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(again.section("t").text("k" + std::to_string(i), "none"), texts[i]);
  }
  EXPECT_THAT(again.section("i").integers("list", {}, INT64_MIN, INT64_MAX),
              ElementsAre(1, -2, INT64_MAX, INT64_MIN));
  EXPECT_TRUE(again.section("i").integers("empty", {1}, 0, 9).empty());
  EXPECT_TRUE(again.flag("yes", false));
  again.reject_unknown_keys();
  EXPECT_EQ(again.resolved(), config.resolved());
}

TEST(Config, ResolvedHoldsDefaultsAndOverridesButNothingUnread) {
  Config config = recipe();
  config.set("seed", "9");
  config.integer("seed", 0);
  config.section("client").integer("epochs", 30);
  const Config again = recipe(config.resolved());
  EXPECT_EQ(again.integer("seed", 0), 9);
  EXPECT_EQ(again.section("client").integer("epochs", 0), 30);
  EXPECT_FALSE(again.has("name"));
}

TEST(Config, ResolvedParts) {
  const Config config = recipe();
  read_recipe(config);
  const std::vector<std::string> parts = {"model", "seed", "nothing"};
  const Config again = recipe(config.resolved(parts));
  EXPECT_EQ(again.section("model").integer("clauses", 0), 200);
  EXPECT_EQ(again.integer("seed", 0), 7);
  EXPECT_FALSE(again.has("data"));
}

// A table may have numbers for keys; it is no array for that.
TEST(Config, NumberedTablesStayTables) {
  const Config config = recipe("[labels.0]\nname = \"cat\"\n");
  EXPECT_EQ(config.section("labels").section("0").text("name", ""), "cat");
  const Config again = recipe(config.resolved());
  EXPECT_EQ(again.section("labels").section("0").text("name", ""), "cat");
}

}  // namespace
}  // namespace bitfed
