/** The worker that places the nodes of a graph: one graph in, its positions out. */
import { place, type Unplaced } from './layout.ts'

addEventListener('message', ({ data }: MessageEvent<Unplaced>) => postMessage(place(data)))
