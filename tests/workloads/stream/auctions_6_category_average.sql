SELECT i.category, AVG(b.price) AS price
FROM closed_auction [RANGE 1 HOUR] c
JOIN item i ON i.id = c.item
JOIN (SELECT item, MAX(price) AS price FROM bid GROUP BY item) b ON b.item = c.item
GROUP BY i.category
