SELECT item, price FROM bid UNION ALL SELECT item, start_price FROM open_auction
