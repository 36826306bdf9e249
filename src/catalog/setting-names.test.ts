import { describe, expect, test } from 'vitest'
import { settingNamesOf, textOfConstant } from './setting-names.ts'

const read = (...names: readonly string[]) => ({ names, unclear: null })

test.each<[body: string, names: readonly string[]]>([
  ['select 1', []],
  ["select current_setting('app.x')", ['app.x']],
  ["select CURRENT_SETTING ( 'App.X' , true )", ['app.x']],
  ['select "current_setting"(\'app.x\'::text)', ['app.x']],
  ["select pg_catalog . current_setting\n(\n'app.x'\n)", ['app.x']],
  ['select current_setting($$app.x$$), current_setting($n$app.y$n$, true)', ['app.x', 'app.y']],
  ["select current_setting('b'), current_setting('a'), current_setting('b')", ['a', 'b']],
  ["-- current_setting('app.x')", ['app.x']],
  ["insert into t values (1) on conflict do nothing; update t set show_all = 'execute me' -- show it", []],
  ["create temp table x as select 'it''s /* no comment'; /* show /* execute */ do */ select e'\\'show'", []],
  ['select "execute", $1, a$b$c, $q$ show $q$ from payments_status', []],
])('the names of settings are found: %s', (body, names) => {
  expect(settingNamesOf(body)).toEqual(read(...names))
})

describe('whatever is not certain counts as all', () => {
  test.each<[body: string, reason: string]>([
    ['select current_setting(name)', 'computes the name of a setting'],
    ["select current_setting('app.' || 'x')", 'computes the name of a setting'],
    ["select current_setting('app.'\n'x')", 'computes the name of a setting'],
    ["select current_setting(e'app\\x2ex')", 'computes the name of a setting'],
    ["select current_setting('app.x'::varchar)", 'computes the name of a setting'],
    ["select current_setting/**/('app.x')", 'computes the name of a setting'],
    ["select current_setting(/* ' */'app.x')", 'computes the name of a setting'],
    ["select current_setting('app.x'/*, */ || 'y')", 'computes the name of a setting'],
    ["select current_setting('app''x')", 'computes the name of a setting'],
    ["select crosstab('select current_setting(''app.x'')')", 'computes the name of a setting'],
    ['select "CURRENT_SETTING"(n)', 'computes the name of a setting'],
    ['select U&"current\\005fsetting"(\'app.x\')', 'uses Unicode escapes'],
    ["select current_setting(u&'app.x')", 'uses Unicode escapes'],
    ['select setting from PG_SETTINGS', 'uses pg_settings'],
    ['select * from "pg_show_all_settings"()', 'uses pg_show_all_settings'],
    ['select query_to_xml(q, true, true, $$$$)', 'uses query_to_xml'],
    ['begin execute x; end', 'uses EXECUTE'],
    ['begin return query\nEXECUTE x; end', 'uses EXECUTE'],
    ['show app.x', 'uses SHOW'],
    ["do $$ begin raise notice ''; end $$", 'uses DO'],
    ["create or replace function f() returns text as e'select current\\x5fsetting($1)'", 'uses CREATE'],
    // With standard_conforming_strings off, the first string ends later.
    [String.raw`select '\' execute x --'`, 'cannot be read with certainty'],
    ["select e'a'\n'\\' execute x --'", 'cannot be read with certainty'],
    ['select 1 /* /* */', 'cannot be read with certainty'],
    ['select $x$ $y$', 'cannot be read with certainty'],
    ["select 'x", 'cannot be read with certainty'],
    ['select "x', 'cannot be read with certainty'],
  ])('%s', (body, reason) => {
    expect(settingNamesOf(body)).toEqual({ names: [], unclear: reason })
  })
})

test('a stored constant is decoded, and one that is cut off is not', () => {
  expect(textOfConstant('9 [ 36 0 0 0 97 112 112 46 120 ]')).toBe('app.x')
  expect(textOfConstant('6 [ 24 0 0 0 -61 -92 ]')).toBe('ä')
  expect(textOfConstant('9 [ 36 0 0 0 97 112 112 46 ]')).toBe(null)
})
