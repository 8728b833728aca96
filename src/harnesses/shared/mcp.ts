// MCP servers in the form most CLIs share: a map by server name.

import type { JsonObject } from '../../domain/json.js'
import type { McpServer } from '../../domain/task.js'

/** `urlKey`: what the CLI calls the URL of a streamable HTTP server; SSE servers always use `url`. */
export const mcpServerMap = (servers: readonly McpServer[], urlKey: string): JsonObject =>
  Object.fromEntries(servers.map(server => [server.name, entry(server, urlKey)]))

function entry(server: McpServer, urlKey: string): JsonObject {
  if (server.transport === 'stdio') return { command: server.command ?? '', args: [...(server.args ?? [])] }
  return server.transport === 'sse' ? { url: server.url ?? '' } : { [urlKey]: server.url ?? '' }
}
