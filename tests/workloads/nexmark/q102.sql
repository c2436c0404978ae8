-- Published with HAVING COUNT(b.auction) >= (SELECT ...): a subquery that gives one value is joined here.
SELECT auction_id, auction_item_name, bid_count
FROM (
    SELECT a.id AS auction_id, a.item_name AS auction_item_name, COUNT(b.auction) AS bid_count
    FROM auction a
    JOIN bid b ON a.id = b.auction
    GROUP BY a.id, a.item_name
) AS counts
CROSS JOIN (SELECT COUNT(*) / COUNT(DISTINCT auction) AS mean FROM bid) AS means
WHERE bid_count >= mean
