import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/** Gives the gateway the page's origin, so it needs no CORS. In production, a reverse proxy does this. */
const gateway = 'http://127.0.0.1:8080'
const proxy = { '/api': gateway, '/v1': gateway, '/ws': { target: gateway, ws: true } }

export default defineConfig({
  plugins: [react()],
  build: { chunkSizeWarningLimit: 1_000 },
  server: { host: '127.0.0.1', port: 5173, strictPort: true, proxy },
  preview: { host: '127.0.0.1', port: 5173, strictPort: true, proxy },
})
