#!/usr/bin/env node
/** The program `svc`. */
import { postponeIdleCollections } from './idle-collections.ts'

postponeIdleCollections()
// The flag has no effect if other modules are loaded before it is set.
await import('./process.ts')
