((SELECT dest FROM flights)) UNION ((SELECT dest FROM weather ORDER BY wind LIMIT 1)) LIMIT 4
