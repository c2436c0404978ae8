SELECT itemno FROM store1 JOIN (VALUES (1)) v (x) ON itemno = x WITH PREFERENCE items1.Estimate.Count(itemno)
