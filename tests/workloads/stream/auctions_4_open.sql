SELECT * FROM open_auction WHERE item NOT IN (SELECT item FROM closed_auction)
