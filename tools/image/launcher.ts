/**
 * The command `bearer-sidecar` of the image, for `docker exec` and `kubectl exec`. The image has no shell and no `env`, so that the kernel
 * must find Node.js by the first line alone; a symbolic link to dist/main.js would need `env`.
 */

/** The text of the executable file. @param node the absolute path of Node.js @param main the absolute path of the program */
export function createLauncher(node: string, main: string): string {
  return `#!${node}\nimport(${JSON.stringify(main)});\n`;
}
