SELECT delay FROM flights GROUP BY ROLLUP (dest)
