SELECT * FROM ISTREAM (SELECT itemno, COUNT(*) AS n FROM store1 GROUP BY itemno) s WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
