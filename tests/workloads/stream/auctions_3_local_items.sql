-- Who lives where the seller of an item that is offered now lives. [NOW] takes the tables as they are at that
-- instant: who moves later changes no earlier answer.
SELECT p.id, p.name, o.item
FROM open_auction [NOW] o
JOIN person s ON s.id = o.seller
JOIN item i ON i.id = o.item
JOIN person p ON p.state = s.state
WHERE i.category = 10 AND p.id <> s.id
