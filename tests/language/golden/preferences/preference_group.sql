SELECT itemno, AVG(price) AS p, SUM(price) FROM store1 GROUP BY itemno ORDER BY p WITH PREFERENCE weighted SUMMARY.Estimate.Count(itemno)
