/**
 * A fake Kubernetes API that stores what kubectl sends: discovery and objects, as needed by `create`, `apply`
 * and `rollout restart`. It runs no workloads.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { decodeFields, encodeField } from './protobuf.ts'

/** Group and version, plural and kind of the objects that the page and the manifests use. */
const KINDS = [
  ['api/v1', 'configmaps', 'ConfigMap'],
  ['api/v1', 'secrets', 'Secret'],
  ['api/v1', 'services', 'Service'],
  ['apis/apps/v1', 'deployments', 'Deployment'],
  ['apis/policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget'],
] as const

// biome-ignore lint/suspicious/noExplicitAny: Kubernetes objects of many shapes
type Json = any

export interface KubernetesApi {
  /** The path of a `KUBECONFIG` file for this API. */
  readonly config: string
  /** The stored objects in order of creation, by kind and name. */
  readonly objects: ReadonlyMap<string, Json>
  close(): Promise<void>
}

export async function startKubernetesApi(): Promise<KubernetesApi> {
  const objects = new Map<string, Json>()
  const server = createServer(async (request, response) => {
    const [status, body] = await answer(request, objects).catch(error => failure(500, 'InternalError', String(error)))
    const [type, bytes] = Buffer.isBuffer(body) ? [PROTOBUF, body] : ['application/json', JSON.stringify(body)]
    response.writeHead(status, { 'content-type': type }).end(bytes)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    config: JSON.stringify({
      ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'test' },
      clusters: [{ name: 'test', cluster: { server: url } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    }),
    objects,
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function answer(request: IncomingMessage, objects: Map<string, Json>): Promise<[number, Json]> {
  const [path = ''] = (request.url ?? '').slice(1).split('?')
  const known = discovery(path)
  if (known !== null) return [200, known]
  const [, version, plural, name] = /^(.*)\/namespaces\/default\/(\w+)(?:\/(.+))?$/.exec(path) ?? []
  const [, , kind] = KINDS.find(([its, plurals]) => its === version && plurals === plural) ?? []
  if (kind === undefined) return failure(404, 'NotFound', path)
  const sent = request.method === 'GET' ? undefined : objectOf(await buffer(request))
  const key = `${kind}/${name ?? sent?.metadata?.name}`
  const before = objects.get(key)
  switch (request.method) {
    case 'POST':
      if (before !== undefined) return failure(409, 'AlreadyExists', key)
      objects.set(key, { ...sent, metadata: { ...sent.metadata, namespace: 'default' } })
      return [201, objects.get(key)]
    case 'GET':
    case 'PATCH':
      if (before === undefined) return failure(404, 'NotFound', key)
      objects.set(key, patched(before, sent))
      return [200, objects.get(key)]
    default:
      return failure(405, 'MethodNotAllowed', key)
  }
}

/** Applies a strategic merge patch. Patches of lists are not supported. */
function patched(before: Json, patch: Json): Json {
  if (patch === undefined) return before
  if (patch === null || typeof patch !== 'object' || Array.isArray(patch)) return patch
  const { $patch, ...given } = patch
  if ($patch === 'replace') return given
  const members = Object.entries(given).map(([name, value]) => [name, patched(before?.[name] ?? {}, value)])
  const all = { ...before, ...Object.fromEntries(members) }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null))
}

function discovery(path: string): Json {
  if (path === 'openapi/v2') return NO_SCHEMAS
  if (path === 'api') return { kind: 'APIVersions', versions: ['v1'] }
  if (path === 'apis') {
    const groups = new Set(KINDS.map(([version]) => version).filter(version => version.startsWith('apis/')))
    return { kind: 'APIGroupList', apiVersion: 'v1', groups: [...groups].map(groupOf) }
  }
  const resources = KINDS.filter(([version]) => version === path).map(([, plural, kind]) => ({
    ...{ name: plural, singularName: kind.toLowerCase(), kind, namespaced: true },
    verbs: ['create', 'get', 'patch'],
  }))
  if (resources.length === 0) return null
  return { kind: 'APIResourceList', apiVersion: 'v1', groupVersion: path.replace(/^apis?\//, ''), resources }
}

function groupOf(path: string): Json {
  const [, name, version] = path.split('/')
  const preferredVersion = { groupVersion: `${name}/${version}`, version }
  return { name, versions: [preferredVersion], preferredVersion }
}

function failure(code: number, reason: string, message: string): [number, Json] {
  return [code, { kind: 'Status', apiVersion: 'v1', status: 'Failure', reason, message, code }]
}

/**
 * A minimal OpenAPI 2.0 document with a title and a version. It contains no schemas, so kubectl validates
 * nothing.
 */
const PROTOBUF = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'
const NO_SCHEMAS: Buffer = Buffer.concat([
  encodeField(1, '2.0'),
  encodeField(2, Buffer.concat([encodeField(1, 'test'), encodeField(2, '1')])),
])

/**
 * Decodes JSON, or a Secret in Kubernetes's envelope for protocol buffers, which `create` of newer kubectl
 * versions sends.
 */
function objectOf(body: Buffer): Json {
  if (!body.subarray(0, 4).equals(Buffer.from('k8s\0'))) return JSON.parse(body.toString())
  const [secret = Buffer.alloc(0)] = decodeFields(body.subarray(4))(2)
  const [metadata = Buffer.alloc(0)] = decodeFields(secret)(1)
  const data = decodeFields(secret)(2).map(entry => {
    const [[key], [value]] = [decodeFields(entry)(1), decodeFields(entry)(2)]
    return [key?.toString(), value?.toString('base64')]
  })
  return {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: decodeFields(metadata)(1).join() } },
    data: Object.fromEntries(data),
  }
}
