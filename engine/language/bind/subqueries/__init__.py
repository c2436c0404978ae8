"""Subqueries in the place of values, made into joins: one rule a file.

values        which joins a SELECT needs, and the column that stands for each
joined_value  one of these joins
rows          how many rows there may be, and the first of them
one_row       rows of which there may be several: SINGLE(MIN(v), COUNT(*)), one row for each key
nothing       what an aggregate gives over no rows, where no row is a partner
membership    IN and EXISTS where they are no conditions of their own
rejecting     a comparison that is not TRUE of NULL: no row without a partner is needed

(SELECT AVG(v) FROM s)                    CROSS JOIN (SELECT AVG(v) FROM s)
(SELECT v FROM s)                         CROSS JOIN (SELECT MIN(v), COUNT(*) FROM s)
(SELECT SUM(v) FROM s WHERE s.k = a.k)    LEFT JOIN (SELECT SUM(v), k FROM s GROUP BY k) ON k = a.k
(SELECT v FROM s WHERE s.k = a.k)         LEFT JOIN (SELECT MIN(v), COUNT(*), k FROM s GROUP BY k) ON ...
(... WHERE s.k = a.k ORDER BY t LIMIT 1)  LEFT JOIN the first row of each k, by ROW_NUMBER(), ON ...
"""
