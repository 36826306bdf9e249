/** A request as texts for other programs. The token is a variable in all of them. */
export interface SnippetRequest {
  readonly url: string
  readonly method: 'GET' | 'POST'
  /** JSON; null without a body. */
  readonly body: string | null
  /** Beside those of the token and of the body. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface Snippet {
  readonly name: string
  readonly text: string
}

export function snippetsOf(request: SnippetRequest): readonly Snippet[] {
  return [
    { name: 'HTTP', text: http(request) },
    { name: 'curl', text: curl(request) },
    { name: 'TypeScript', text: typescript(request) },
  ]
}

function http({ url, method, body, headers = {} }: SnippetRequest): string {
  const { host, pathname, search } = new URL(url)
  const lines = Object.entries(headers).map(([name, value]) => `\n${name}: ${value}`)
  const head = `${method} ${pathname}${search} HTTP/1.1\nHost: ${host}\nAuthorization: Bearer …${lines.join('')}`
  return body === null ? head : `${head}\nContent-Type: application/json\n\n${body}`
}

function curl({ url, body, headers = {} }: SnippetRequest): string {
  const lines = [`curl ${quoted(url)}`, '-H "Authorization: Bearer $TOKEN"']
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== null) lines.push("-H 'Content-Type: application/json'", `-d ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

/** Quotes a text for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

function typescript({ url, method, body, headers: others = {} }: SnippetRequest): string {
  const headers = ["Authorization: 'Bearer ' + token"]
  for (const [name, value] of Object.entries(others)) headers.push(`${JSON.stringify(name)}: ${JSON.stringify(value)}`)
  if (body !== null) headers.push("'Content-Type': 'application/json'")
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}'`]),
    `headers: { ${headers.join(', ')} }`,
    ...(body === null ? [] : [`body: ${JSON.stringify(body)}`]),
  ]
  return [
    `const response = await fetch(${JSON.stringify(url)}, {`,
    ...options.map(option => `  ${option},`),
    '})',
    'if (!response.ok) throw new Error(await response.text())',
    'const { data } = await response.json()',
  ].join('\n')
}
