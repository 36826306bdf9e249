import { expect, test } from 'vitest'
import type { TracingConfig } from '../config/config.ts'
import type { Event } from '../events.ts'
import { openTracing, type TracingPackages } from './open-tracing.ts'

const CONFIG: TracingConfig = {
  enabled: true,
  otlpEndpoint: 'http://127.0.0.1:4318/v1/traces',
  otlpHeaders: null,
  serviceName: 'svc',
  sampleRatio: 1,
}
const clocks = { clock: () => 0, now: () => 0 }

const packages: TracingPackages = {
  api: () => import('@opentelemetry/api'),
  sdk: () => import('@opentelemetry/sdk-trace'),
  resources: () => import('@opentelemetry/resources'),
  exporter: () => import('@opentelemetry/exporter-trace-otlp-http'),
}
const absent = () => Promise.reject(new Error("Cannot find package 'it'"))

test('without tracing nothing is loaded', async () => {
  const none = { api: absent, sdk: absent, resources: absent, exporter: absent }
  const off = { ...CONFIG, enabled: false }
  expect(await openTracing(off, { ...clocks, emit: () => {}, packages: none })).toBeNull()
})

test.each(['api', 'sdk', 'resources', 'exporter'] as const)(
  'a missing package (%s) is an error with the command that installs it',
  async missing => {
    const opening = openTracing(CONFIG, { ...clocks, emit: () => {}, packages: { ...packages, [missing]: absent } })
    await expect(opening).rejects.toThrow(
      /cannot be loaded \(Cannot find package 'it'\)\. .*npm install @opentelemetry\/api@1 @opentelemetry\/sdk-trace@2/,
    )
  },
)

test('without an endpoint only the API is loaded', async () => {
  const only = { ...packages, sdk: absent, resources: absent, exporter: absent }
  const events: Event[] = []
  const tracing = await openTracing(
    { ...CONFIG, otlpEndpoint: null },
    { ...clocks, emit: event => events.push(event), packages: only },
  )
  expect(tracing?.stats()).toEqual({ exported: 0, failed: 0 })
  expect(events).toEqual([])
})
