SELECT itemno FROM store1 INTERSECT SELECT itemno FROM store2 WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
