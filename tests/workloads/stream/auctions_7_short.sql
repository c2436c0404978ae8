SELECT o.* FROM closed_auction [NOW] c JOIN open_auction [RANGE 5 HOURS] o ON o.item = c.item
