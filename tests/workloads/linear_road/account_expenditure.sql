-- What a car spent on a day, from the table of tolls by day that the benchmark supplies.
SELECT r.vid, r.qid, t.toll
FROM report [NOW] r
JOIN toll_history t ON t.vid = r.vid AND t.xway = r.xway AND t.day = r.day
WHERE r.type = 3
