/**
 * docs/operations/kubernetes-autoscaling.yaml and the Helm chart, which renders what the manifests say. Both
 * are valid for the Kubernetes API.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { METRICS } from '../../src/ops/metric-table.ts'
import { folderFixture } from '../support/fixtures.ts'
import { compileModule, type Manifest, manifestsOf, moduleOf } from '../support/kubernetes-types.ts'
import { blocksOf } from '../support/page.ts'
import { findProgram } from '../support/programs.ts'
import { ROOT, read } from '../tidy/tree.ts'

// The compiler reads many types, on a machine that may be busy.
vi.setConfig({ testTimeout: 120_000 })

const CHART = join(ROOT, 'docs/operations/helm')
const folder = folderFixture()
const scaler: Manifest = manifestsOf(read('docs/operations/kubernetes-autoscaling.yaml')).HorizontalPodAutoscaler
const own = join(ROOT, '.cache/helm/helm')
const helm = existsSync(own) ? own : findProgram('helm')

test('kubernetes-autoscaling.yaml is valid for the Kubernetes API, and scales the Deployment', async () => {
  expect(await compileModule(folder, moduleOf(scaler))).toBe('')
  const slip = { ...scaler, spec: { ...scaler.spec, maxReplicas: '10' } }
  expect(await compileModule(folder, moduleOf(slip))).toMatch(/error TS2322/)
  const { Deployment } = manifestsOf(read('docs/operations/kubernetes.yaml'))
  const { apiVersion, kind, name } = scaler.spec.scaleTargetRef
  expect([apiVersion, kind, name]).toEqual([Deployment.apiVersion, Deployment.kind, Deployment.metadata.name])
})

test('the chart has the version of the program', () => {
  expect(parse(read('docs/operations/helm/Chart.yaml')).appVersion).toBe(JSON.parse(read('package.json')).version)
})

test('the rule for Prometheus Adapter makes the metric of the autoscaler from one that the gateway exposes', () => {
  const rules = blocksOf(read('docs/operations/scaling.md')).find(({ language }) => language === 'yaml')
  const [rule] = parse(rules?.text ?? '').rules
  const [{ pods }] = scaler.spec.metrics
  expect(rule.name.as).toBe(pods.metric.name)
  const [name = ''] = /^\w+/.exec(rule.seriesQuery) ?? []
  expect(Object.values(METRICS).map(metric => metric.name)).toContain(name)
  expect(rule.metricsQuery).toContain('rate(<<.Series>>{<<.LabelMatchers>>}[')
})

// The title names the missing program.
describe.skipIf(helm === null)(`the Helm chart (${helm === null ? 'helm missing: .ci/programs' : 'rendered'})`, () => {
  function rendered(...options: readonly string[]): Readonly<Record<string, Manifest>> {
    const args = ['template', 'svc', CHART, '--kube-version', '1.31.0', ...options]
    return manifestsOf(execFileSync(helm ?? '', args, { encoding: 'utf8', stdio: 'pipe' }))
  }

  test('renders kubernetes.yaml with its default values, and a checksum of the configuration', () => {
    const chart = rendered()
    const { metadata } = chart.Deployment.spec.template
    expect(metadata.annotations).toEqual({ 'checksum/config': expect.stringMatching(/^[0-9a-f]{64}$/) })
    delete metadata.annotations
    const manifests = manifestsOf(read('docs/operations/kubernetes.yaml'))
    const text = (config: Manifest) => config.data['svc.toml'].trimEnd()
    expect(text(chart.ConfigMap)).toBe(text(manifests.ConfigMap))
    expect({ ...chart, ConfigMap: null }).toEqual({ ...manifests, ConfigMap: null })
  })

  test('renders the autoscaler, which then sets the number of replicas', () => {
    const chart = rendered('--set', 'autoscaling.enabled=true')
    expect(chart.HorizontalPodAutoscaler).toEqual(scaler)
    expect(chart.Deployment.spec).not.toHaveProperty('replicas')
  })

  test('renders objects that are valid for the Kubernetes API, with other values too', async () => {
    const chart = rendered(
      ...['--set', 'autoscaling.enabled=true,secretName=other,image.tag=1.2.3,minAvailable=2'],
      ...['--set', 'spreadOver={kubernetes.io/hostname}', '--set-string', 'config=[gateway]'],
    )
    expect(await compileModule(folder, Object.values(chart).map(moduleOf).join(''))).toBe('')
    const [container] = chart.Deployment.spec.template.spec.containers
    expect(container.image).toMatch(/:1\.2\.3$/)
    expect(container.env[1].valueFrom.secretKeyRef.name).toBe('other')
    expect(chart.Deployment.spec.template.spec.topologySpreadConstraints).toHaveLength(1)
    expect(chart.PodDisruptionBudget.spec.minAvailable).toBe(2)
  })

  test('a changed configuration replaces the pods', () => {
    const of = (...options: readonly string[]) => rendered(...options).Deployment.spec.template.metadata.annotations
    expect(of('--set-string', 'config=[gateway]')).not.toEqual(of())
  })
})
