/** `merge`. */

import type { Example } from './example.ts'

export const MERGE: readonly Example[] = [
  {
    construct: 'merge',
    query:
      'merge products as p using arrivals as a on p.sku = a.sku when matched then update set stock = p.stock + a.quantity when not matched then insert (sku, name, stock) values (a.sku, a.sku, a.quantity)',
    formatted:
      'merge products as p\nusing arrivals as a on p.sku = a.sku\nwhen matched then update set stock = p.stock + a.quantity\nwhen not matched then insert (sku, name, stock) values (\n  a.sku,\n  a.sku,\n  a.quantity\n)',
    sql: 'MERGE INTO products AS p USING arrivals AS a ON p.sku = a.sku WHEN MATCHED THEN UPDATE SET stock = p.stock + a.quantity WHEN NOT MATCHED THEN INSERT (sku, name, stock) VALUES (a.sku, a.sku, a.quantity)',
    note: 'For each row of the source: what to do if it is there, and what if it is not.',
  },
  {
    construct: 'merge',
    query:
      'merge products p using (get arrivals fields sku, sum(quantity) as quantity) a on p.sku = a.sku when matched and a.quantity = 0 then delete when matched then update set stock = a.quantity, active = true when not matched by target then nothing',
    formatted:
      'merge products as p\nusing (get arrivals fields sku, sum(quantity) as quantity) as a on p.sku = a.sku\nwhen matched and a.quantity = 0 then delete\nwhen matched then update set stock = a.quantity, active = true\nwhen not matched by target then nothing',
    sql: 'MERGE INTO products AS p USING (SELECT sku, SUM(quantity) AS quantity FROM arrivals GROUP BY sku) AS a ON p.sku = a.sku WHEN MATCHED AND a.quantity = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET stock = a.quantity, active = true WHEN NOT MATCHED THEN DO NOTHING',
    note: 'A query as source; the first branch that fits is taken.',
  },
  {
    construct: 'merge',
    query:
      'merge products using (get arrivals) on products.sku = source.sku when matched then nothing when not matched by source and products.stock = 0 then delete',
    formatted:
      'merge products\nusing (get arrivals) as source on products.sku = source.sku\nwhen matched then nothing\nwhen not matched by source and products.stock = 0 then delete',
    sql: 'MERGE INTO products USING (SELECT * FROM arrivals) AS source ON products.sku = source.sku WHEN MATCHED THEN DO NOTHING WHEN NOT MATCHED BY SOURCE AND products.stock = 0 THEN DELETE',
    note: 'A query without an alias is called "source"; "by source" is about rows that only the table has (PostgreSQL 17).',
  },
  {
    construct: 'merge',
    query:
      'merge arrivals using products p[stock < 5] on arrivals.sku = p.sku when not matched then insert values (p.sku, 5, now())',
    formatted:
      'merge arrivals\nusing products as p[stock < 5] on arrivals.sku = p.sku\nwhen not matched then insert values (p.sku, 5, now())',
    sql: 'MERGE INTO arrivals USING (SELECT * FROM products AS p WHERE stock < 5) AS p ON arrivals.sku = p.sku WHEN NOT MATCHED THEN INSERT VALUES (p.sku, 5, NOW())',
    note: 'A condition of the source picks its rows first; without column names the values are those of all columns.',
  },
]
