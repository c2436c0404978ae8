SELECT a.price FROM store1 a, store1 b WHERE a.itemno = b.itemno AND a.price < b.price WITH PREFERENCE SUMMARY.Estimate.Count(a.itemno), SUMMARY.Estimate.Count(b.itemno)
