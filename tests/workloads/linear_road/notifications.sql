-- To each car a message as it enters a segment.
SELECT ISTREAM(vid, seg) FROM report [PARTITION BY vid ROWS 1] WHERE type = 0
