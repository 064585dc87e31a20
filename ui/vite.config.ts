import { readFileSync } from 'node:fs';
import react from '@vitejs/plugin-react';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';

const server = process.env['PREHEAT_URL'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  plugins: [react(), fontLicences()],
  build: {
    target: 'es2023',
    // The Go program embeds the files and serves them with its own policy,
    // which allows no inline code: everything is a file of its own.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: 'third-party-licenses.md' },
    reportCompressedSize: true,
  },
  server: {
    // The page's API calls go to a running server, with its own address as
    // their origin, as the server asks.
    proxy: { '/v1': { target: server, changeOrigin: true, headers: { Origin: server } } },
  },
  test: { environment: 'node', include: ['src/**/*.test.ts', 'src/**/*.test.tsx'] },
});

/** The fonts' licence goes where the fonts go. */
function fontLicences(): Plugin {
  const packages = ['@fontsource-variable/ibm-plex-sans', '@fontsource/ibm-plex-mono'];
  return {
    name: 'font-licences',
    generateBundle() {
      const texts = packages.map((name) =>
        readFileSync(new URL(`node_modules/${name}/LICENSE`, import.meta.url), 'utf8'),
      );
      this.emitFile({ type: 'asset', fileName: 'font-licenses.txt', source: texts.join('\n\n') });
    },
  };
}
