SELECT itemno FROM store1 GROUP BY itemno HAVING COUNT(*) > 3 WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
