/** `completion/complete`: names of constructs, where a prompt or a resource template takes one. */
import type { CompleteResult } from '@modelcontextprotocol/sdk/spec.types.js'
import type { Corpus } from '../corpus/corpus.ts'
import { notAmong } from './arguments.ts'
import { partNames } from './constructs.ts'
import { PROMPTS } from './prompts.ts'
import { DOCUMENTS, TEMPLATES, unknownResource } from './resources.ts'
import { invalid, isJsonObject, kindOf, ownMember, type Params } from './rpc.ts'

/** Of the protocol: one answer has no more. */
const VALUES_MAX = 100

/** Throws an `RpcError`: −32602 with the name of the parameter, −32002 for a resource that is not there. */
export function complete(params: Params, corpus: Corpus): CompleteResult {
  const ref = objectAt(params, 'ref')
  const argument = objectAt(params, 'argument')
  const name = textAt(argument, 'name', 'argument.name')
  const value = textAt(argument, 'value', 'argument.value')
  const names = argumentsOf(ref, corpus)
  if (!names.includes(name)) throw notAmong('argument.name', name, names)
  const found = name === 'construct' ? partNames(corpus).filter(part => part.startsWith(value.toLowerCase())) : []
  const values = found.toSorted().slice(0, VALUES_MAX)
  return { completion: { values, total: found.length, hasMore: found.length > values.length } }
}

function argumentsOf(ref: Params, corpus: Corpus): readonly string[] {
  const type = textAt(ref, 'type', 'ref.type')
  if (type === 'ref/prompt') {
    const name = textAt(ref, 'name', 'ref.name')
    const prompt = PROMPTS.find(({ listed }) => listed.name === name)
    if (prompt === undefined)
      throw notAmong(
        'ref.name',
        name,
        PROMPTS.map(({ listed }) => listed.name),
      )
    return prompt.arguments
  }
  if (type !== 'ref/resource') throw notAmong('ref.type', type, ['ref/prompt', 'ref/resource'])
  const uri = textAt(ref, 'uri', 'ref.uri')
  const template = TEMPLATES.find(({ uriTemplate }) => uriTemplate === uri)
  if (template === undefined && !DOCUMENTS.some(document => document.uri === uri)) throw unknownResource(uri, corpus)
  return [...(template?.uriTemplate.matchAll(/\{(\w+)\}/g) ?? [])].map(([, variable = '']) => variable)
}

function objectAt(params: Params, name: string): Params {
  const value = ownMember(params, name)
  if (!isJsonObject(value)) throw invalid(name, `expected an object, not ${kindOf(value)}`)
  return value
}

function textAt(params: Params, key: string, name: string): string {
  const value = ownMember(params, key)
  if (typeof value !== 'string') throw invalid(name, `expected a string, not ${kindOf(value)}`)
  return value
}
