-- The greatest bid or, without one, the price at which it began, by a join where UNION is published.
SELECT c.item, GREATEST(o.start_price, COALESCE(b.price, o.start_price)) AS price
FROM closed_auction [NOW] c
JOIN open_auction o ON o.item = c.item
LEFT JOIN (SELECT item, MAX(price) AS price FROM bid GROUP BY item) b ON b.item = c.item
