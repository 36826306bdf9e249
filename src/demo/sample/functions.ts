/**
 * Functions that callers can try: stable and volatile, sets and scalars, defaults, an overload, a variadic
 * one.
 */
export const functions: readonly string[] = [
  `create function slugify(value text) returns text immutable strict parallel safe language sql
    return trim(both '-' from regexp_replace(lower(value), '[^a-z0-9]+', '-', 'g'))`,
  `comment on function slugify is 'Lower case, with single hyphens between words.\n@example {"value": "Blue ` +
    `Market & Co."}'`,

  `create function customer_value(customer bigint) returns numeric stable language sql
    return (select coalesce(sum(total), 0) from orders where customer_id = customer and status <> 'cancelled')`,
  `comment on function customer_value is 'What a customer has ordered so far.\n@example {"customer": 2}'`,

  `create function top_products(since date default '2025-01-01', top integer default 10)
    returns table (product_id bigint, name text, sold bigint, revenue numeric) stable language sql
    begin atomic
      select p.id, p.name, sum(i.quantity), sum(i.amount)
      from order_items i join products p on p.id = i.product_id join orders o on o.id = i.order_id
      where o.placed_at >= since and o.status <> 'cancelled'
      group by p.id, p.name order by 4 desc, 1 limit top;
    end`,
  `comment on function top_products is 'The products that brought in most since a day.\n@example {"since": ` +
    `"2025-06-01", "top": 3}'`,

  `create function search_products(query text) returns setof products stable language sql
    begin atomic
      select * from products where search_vector @@ websearch_to_tsquery('english', query)
      order by ts_rank(search_vector, websearch_to_tsquery('english', query)) desc, id;
    end`,
  `create function search_products(query text, max_price numeric) returns setof products stable language sql
    begin atomic
      select * from search_products(query) where price <= max_price;
    end`,
  `comment on function search_products(text) is '@example {"query": "copper tyre"}'`,
  `comment on function search_products(text, numeric) is '@example {"query": "copper tyre", "max_price": 400}'`,

  `create function order_summary(order_id bigint) returns jsonb stable language sql
    return (select jsonb_build_object('number', number, 'status', status, 'total', total,
        'items', (select count(*) from order_items i where i.order_id = o.id))
      from orders o where o.id = order_summary.order_id)`,
  `comment on function order_summary is '@example {"order_id": 60}'`,

  `create function approve_order(order_id bigint, note text default null) returns orders volatile language plpgsql as $$
    declare
      approved orders;
    begin
      update orders set status = 'paid', notes = coalesce(note, notes),
        approved_by = nullif(current_setting('app.current_user_id', true), '')::uuid
      where id = order_id and status = 'pending'
      returning * into approved;
      if not found then
        raise exception 'order % is not pending', order_id using errcode = 'check_violation';
      end if;
      return approved;
    end $$`,
  `comment on function approve_order is 'Releases a pending order in the name of the caller.\n@example ` +
    `{"order_id": 12610, "note": "Agreed by telephone."}'`,

  `create function restock(product bigint, quantity integer) returns integer volatile language sql
    begin atomic
      update products set stock = stock + quantity where id = product returning stock;
    end`,
  `comment on function restock is '@example {"product": 670, "quantity": 24}'`,
  `create function tag_products(tag text, variadic products bigint[]) returns bigint volatile language sql
    begin atomic
      with added as (
        insert into product_tags (product_id, tag_id)
        select product, t.id from unnest(products) product, tags t where t.name = tag
        on conflict do nothing returning 1
      )
      select count(*) from added;
    end`,
  `comment on function tag_products is 'Marks products with a tag; answers how many were not marked ` +
    `before.\n@example {"tag": "sale", "products": [440, 670]}'`,
]
