-- As published: of each seller the last 10 of the rows that a join gives, which are a stream as auctions close.
SELECT seller, AVG(price) AS price
FROM (
    SELECT o.seller, b.price
    FROM closed_auction [NOW] c
    JOIN open_auction o ON o.item = c.item
    JOIN (SELECT item, MAX(price) AS price FROM bid GROUP BY item) b ON b.item = c.item
) [PARTITION BY seller ROWS 10]
GROUP BY seller
