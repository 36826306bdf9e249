#!/usr/bin/env node
/** The program `svc`. */
import { postponeIdleCollections } from './idle-collections.ts'

postponeIdleCollections()
// Loaded afterwards: the flag has no effect once other modules are.
await import('./process.ts')
