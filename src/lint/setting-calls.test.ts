import { describe, expect, test } from 'vitest'
import { replaceCalls, settingCalls } from './setting-calls.ts'

describe('calls', () => {
  test.each([
    [
      "(tenant_id = (NULLIF(current_setting('app.x'::text, true), ''::text))::integer)",
      "current_setting('app.x'::text, true)",
    ],
    ['(tenant_id = sales.whose())', 'sales.whose()'],
    ['(a = "S a""les"."who (se"())', '"S a""les"."who (se"()'],
    ["(note = 'it''s (') AND (b = current_setting('a.b'))", "current_setting('a.b')"],
    ["(a = current_setting((('a.'::text || b) || ')'::text)))", "current_setting((('a.'::text || b) || ')'::text))"],
    ["(a = current_setting(current_setting('a.b')))", "current_setting(current_setting('a.b'))"],
  ])('calls of current_setting are found: %s', (expression, call) => {
    const [found, ...more] = settingCalls(expression)
    expect(more).toEqual([])
    expect(found).toMatchObject({ once: false })
    expect(expression.slice(found?.start, found?.end)).toBe(call)
  })

  test.each([
    "(a = 'current_setting(''x'')')",
    '(a = "current_setting(")',
    "(a = sales.current_setting('x'))",
    '(now() > a)',
    '(a = lower(b))',
    '(a = sales.f(b))',
    '',
    ')) ((',
  ])('no call is found in %s', expression => {
    expect(settingCalls(expression)).toEqual([])
  })

  test.each([
    "(a = ( SELECT current_setting('x.y'::text, true)))",
    "(EXISTS ( SELECT 1 FROM b WHERE (b.c = (current_setting('x.y'))::integer)))",
    "(a IN ( WITH x AS (SELECT 1) SELECT current_setting('x.y')))",
    "(a IN ( VALUES (current_setting('x.y'))))",
  ])('one call is found in %s', expression => {
    expect(settingCalls(expression)).toEqual([expect.objectContaining({ setting: 'x.y', once: true })])
  })

  test('the name of the setting is found if it is a literal', () => {
    const names = (expression: string) => settingCalls(expression).map(({ setting }) => setting)
    expect(names("current_setting('it''s.x'::text)")).toEqual(["it's.x"])
    expect(names('current_setting(a) + b.c()')).toEqual([null, null])
    expect(names("current_setting('a.b') || current_setting('c.d', true)")).toEqual(['a.b', 'c.d'])
  })
})

test('replacing keeps the surrounding text', () => {
  const expression = "(('é' = current_setting('a.b')) AND (x = f.g()))"
  expect(replaceCalls(expression, settingCalls(expression), text => `<${text}>`)).toBe(
    "(('é' = <current_setting('a.b')>) AND (x = <f.g()>))",
  )
})

test('a hundred thousand parentheses are parsed safely', () => {
  expect(settingCalls(`${'('.repeat(100_000)}current_setting('a.b')${')'.repeat(100_000)}`)).toHaveLength(1)
})
