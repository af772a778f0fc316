#include "app/run/http_request.h"

#include <gtest/gtest.h>

namespace fedep {
namespace {

TEST(HttpRequests, SayMethodPathAndHost) {
  const auto request =
      parse_request("GET /abc/data.json?at=3 HTTP/1.1\r\nAccept: */*\r\nhOsT:  127.0.0.1:80 ");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "GET");
  EXPECT_EQ(request->path, "/abc/data.json");
  EXPECT_EQ(request->host, "127.0.0.1:80");
}

TEST(HttpRequests, WithTwoHostsHaveNone) {
  EXPECT_EQ(parse_request("GET / HTTP/1.1\r\nHost: a\r\nHost: b")->host, "");
  EXPECT_EQ(parse_request("GET / HTTP/1.0")->host, "");
}

TEST(HttpRequests, ThatAreNoneAreNone) {
  for (const char* head :
       {"", "GET", "GET /", "GET  HTTP/2", "GET / HTTP/2", "\r\n", "GET / HTTP/1.1\r\nno colon"}) {
    EXPECT_FALSE(parse_request(head)) << head;
  }
}

TEST(HttpAnswers, SayHowLongTheyAreAndCloseTheConnection) {
  const std::string head = answer_head(200, "text/html", 17);
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 OK\r\n"));
  EXPECT_NE(head.find("\r\nContent-Length: 17\r\n"), head.npos);
  EXPECT_TRUE(head.ends_with("\r\nConnection: close\r\n\r\n"));
}

TEST(Secrets, AreTheSameOnlyInEveryCharacter) {
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("", "a"));
}

}  // namespace
}  // namespace fedep
