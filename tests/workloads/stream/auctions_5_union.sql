-- As published, the greatest of the bids and of the price at which the auction began, now without RSTREAM.
SELECT c.item, MAX(p.price) AS price
FROM closed_auction [NOW] c
JOIN (SELECT item, price FROM bid UNION ALL SELECT item, start_price FROM open_auction) p ON p.item = c.item
GROUP BY c.item
