#include "harness/base/csv.h"

#include <gtest/gtest.h>

namespace capstone {
namespace {

TEST(Csv, CellsThatASpreadsheetWouldRunAreMadeText) {
  EXPECT_EQ(csv_row({"=SUM(A1:A9)", "+cmd", "-cmd", "@x", "\tx"}), "'=SUM(A1:A9),'+cmd,'-cmd,'@x,'\tx\r\n");
  EXPECT_EQ(csv_row({"-1.5", "+2", "1e3", "plain", ""}), "-1.5,+2,1e3,plain,\r\n") << "numbers stay numbers";
}

TEST(Csv, CommasQuotesAndLineBreaksAreQuoted) {
  EXPECT_EQ(csv_row({"a,b", "say \"hi\"", "two\nlines", "caf\xE9"}),
            "\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",caf\xEF\xBF\xBD\r\n");
}

TEST(Csv, WhatIsWrittenIsReadBack) {
  const std::vector<std::string> cells{"=1+1", "a,\"b\"\r\nc", "", "'quoted'", "-3", "<script>"};
  auto rows = read_csv(csv_row({"x"}) + csv_row(cells), "f.csv");
  ASSERT_TRUE(rows) << rows.error().what;
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[1].cells, cells);
}

TEST(Csv, ByteOrderMarkUnixLinesAndEmptyLinesAreTaken) {
  auto rows = read_csv("\xEF\xBB\xBFname,id\n\nAda,1\n", "f.csv");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].cells[0], "name");
  EXPECT_EQ((*rows)[1].line, 3);
}

TEST(Csv, AnOpenQuotationNamesTheLineItBeganIn) {
  auto rows = read_csv("a,b\n\"one\n\ntwo", "f.csv");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().where, "f.csv:2");
  rows = read_csv("\"a\"b\n", "f.csv");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().what, "text follows a closing quotation mark");
}

TEST(Csv, ATableFindsItsColumnsByNameAndNamesWhatIsMissing) {
  auto table = CsvTable::read("ID , Name\n7, Ada \n8\n", "f.csv", {"name"});
  ASSERT_TRUE(table) << table.error().what;
  EXPECT_EQ(table->at(0, "name"), "Ada");
  EXPECT_EQ(table->at(1, "name"), "");
  EXPECT_EQ(table->at(0, "email"), "");
  auto missing = CsvTable::read("id\n", "f.csv", {"name"});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().what, "no column 'name'");
  EXPECT_EQ(missing.error().hint, "the columns are: id");
  EXPECT_FALSE(CsvTable::read("name,name\n", "f.csv", {"name"}));
  EXPECT_FALSE(CsvTable::read("name\na,b\n", "f.csv", {"name"}));
  EXPECT_FALSE(CsvTable::read("", "f.csv", {"name"}));
}

}  // namespace
}  // namespace capstone
