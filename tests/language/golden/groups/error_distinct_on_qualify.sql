SELECT DISTINCT ON (carrier) carrier AS c, delay * 2 AS twice FROM flights QUALIFY COUNT(*) OVER () > 1 ORDER BY 1, twice DESC
