SELECT itemno FROM store1 UNION ALL SELECT itemno FROM store2 WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
