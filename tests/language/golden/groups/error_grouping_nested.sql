SELECT dest FROM flights GROUP BY GROUPING SETS ((dest, ROLLUP (carrier)))
