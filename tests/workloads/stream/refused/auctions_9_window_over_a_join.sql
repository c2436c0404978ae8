SELECT seller, AVG(price)
FROM (SELECT o.seller, o.start_price AS price FROM closed_auction c JOIN open_auction o ON o.item = c.item)
    [PARTITION BY seller ROWS 10]
GROUP BY seller
