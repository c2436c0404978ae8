-- A window of each seller's last 10 over what is joined: their number from the last one on.
SELECT seller, AVG(price) AS price
FROM (
    SELECT o.seller, b.price, ROW_NUMBER() OVER (PARTITION BY o.seller ORDER BY c.ts DESC) AS back
    FROM closed_auction c
    JOIN open_auction o ON o.item = c.item
    JOIN (SELECT item, MAX(price) AS price FROM bid GROUP BY item) b ON b.item = c.item
)
WHERE back <= 10
GROUP BY seller
