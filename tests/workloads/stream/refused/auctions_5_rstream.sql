SELECT RSTREAM(c.item, b.price) FROM closed_auction [NOW] c JOIN bid b ON b.item = c.item
