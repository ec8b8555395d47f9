// Pictures: well-formed whatever names say, the same bytes each time, and of a size that a person
// can look at.
#include <granule/prop/xml.hpp>

#include "picture/layout.hpp"
#include "told.hpp"

namespace granule::prop {
namespace {

const std::string kGrown = "resource r vmm\na = allocate r 2g capacity=4g\nb = grow a 3g\n";

TEST(Xml, WhatXmlDoesNotAllowIsReplacedAndUtf8Stays) {
  EXPECT_EQ(xml_escaped("a<b>&\"\x01\n"), "a&lt;b&gt;&amp;&quot;?\n");
  EXPECT_EQ(xml_escaped("\xC3\xA4 \xE2\x86\x92 \xF0\x9F\x98\x80"),
            "\xC3\xA4 \xE2\x86\x92 \xF0\x9F\x98\x80");
  EXPECT_EQ(xml_escaped("\xE4 \xC0\xAF \xED\xA0\x80 \xEF\xBF\xBF \xC3"), "? ?? ??? ??? ?");
}

TEST(Xml, TheReaderOfTheseTestsFindsFaults) {
  EXPECT_EQ(xml_fault(R"(<a b="1"><c/>x &amp; y</a>)"), "");
  EXPECT_NE(xml_fault("<a><b></a></b>"), "");
  EXPECT_NE(xml_fault("<a>x & y</a>"), "");
  EXPECT_NE(xml_fault(R"(<a b="<"/>)"), "");
  EXPECT_NE(xml_fault("<a>"), "");
}

TEST(Svg, ShowsBuffersMemoryAccessAndTotals) {
  const std::string svg = svg_of(told(kGrown).story);
  EXPECT_EQ(xml_fault(svg), "");
  for (const char* part :
       {">a 2g</text>", ">b 3g</text>", ">A</text>", ">B</text>", ">rw</text>", "0x000302000000",
        "reserved 4g (8 MiB)", "program test", "1 reservations, 2 mappings", R"(class="gap")"})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
}

TEST(Svg, NamesAreEscaped) {
  const std::string svg = svg_of(told(kGrown, {}, "<svg> & \xE4.granule").story);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find("program &lt;svg&gt; &amp; ?"), std::string::npos) << svg.substr(0, 6000);
  Snapshot shot = told(kGrown).end();
  shot.rows[0].viewers[0].name = R"(</text><script>"&)";
  const std::string named = svg_of(shot, {"t", "w", "f"});
  EXPECT_EQ(xml_fault(named), "");
  EXPECT_EQ(named.find("<script"), std::string::npos);
}

TEST(Svg, TheSameProgramGivesTheSameBytes) {
  EXPECT_EQ(svg_of(told(kGrown).story), svg_of(told(kGrown).story));
}

TEST(Svg, AFailureIsSaidAndItsMomentDrawn) {
  const Told t = told("resource r vmm\na = allocate r 2g\nexpect mappings 5\nclose a\n");
  const std::string svg = svg_of(t.story);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_NE(svg.find(R"(class="failure">line 4: expect mappings 5)"), std::string::npos);
  EXPECT_NE(svg.find(">a 2g</text>"), std::string::npos) << "not yet closed";
}

TEST(Svg, ThousandsOfMappingsBecomeFewBoxes) {
  RunOptions options;
  options.checking = Checking::kNone;
  const Told t = told(
      "resource r vmm\na = allocate r 1g capacity=4096g\nrepeat 2..3000 resize a @g\n", options);
  EXPECT_EQ(t.end().rows.at(0).pieces.size(), 3000u);
  const std::string svg = svg_of(t.story);
  EXPECT_LT(svg.size(), 20000u);
  EXPECT_NE(svg.find("3000 x 1g"), std::string::npos) << svg;
}

TEST(Svg, WhatIsLeftOutIsSaid) {
  std::string many = "v = cuMemAddressReserve 400g\nh = cuMemCreate 1g\n";
  for (int i = 0; i < 400; i += 2) many += "cuMemMap v+" + std::to_string(i) + "g 1g h\n";
  for (int i = 0; i < 100; ++i) many += "w" + std::to_string(i) + " = cuMemAddressReserve 1g\n";
  const std::string svg = svg_of(told(many).story);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_LT(svg.size(), 60000u);
  EXPECT_NE(svg.find("not drawn:"), std::string::npos);
  EXPECT_NE(svg.find("184 mappings"), std::string::npos);
  EXPECT_NE(svg.find("41 rows between are not drawn"), std::string::npos);
}

TEST(Layout, OneGranuleAndATebibyteFitAPage) {
  Row row;
  row.base = std::uint64_t{1} << 40;
  row.size = std::uint64_t{1} << 40;
  const std::uint64_t granule = std::uint64_t{2} << 20;
  Piece piece;
  piece.base = row.base + 5 * granule;
  piece.size = granule;
  row.pieces.push_back(piece);
  const picture::RowLayout layout = picture::lay_out(row, granule);
  ASSERT_EQ(layout.boxes.size(), 3u);
  EXPECT_LE(layout.scale.width(), picture::kRowWidth);
  EXPECT_EQ(layout.scale.x(piece.base),
            5 * (layout.scale.x(piece.end()) - layout.scale.x(piece.base)))
      << "to scale before it";
  EXPECT_TRUE(layout.scale.steps().back().shortened);
  EXPECT_EQ(layout.scale.x(row.end()), layout.scale.width());
}

TEST(Layout, NamesThatWouldMeetStandOnLevelsAndTooManyAreCounted) {
  Row row;
  row.base = 0x1000000;
  row.size = 0x1000000;
  for (int i = 0; i < 30; ++i)
    row.viewers.push_back(
        {Viewer::Kind::kBuffer, "b" + std::to_string(i), row.base, row.size, false});
  const picture::RowLayout layout = picture::lay_out(row, 0x200000);
  EXPECT_EQ(layout.levels, picture::kMostLevels);
  EXPECT_EQ(layout.labels.size() + layout.labels_left_out, 30u);
}

}  // namespace
}  // namespace granule::prop
