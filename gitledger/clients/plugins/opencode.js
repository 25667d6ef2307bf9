// Written by gitledger (gitledger hooks install); taken away by gitledger hooks uninstall. Changes here are lost.
// OpenCode's events, each handed to gitledger as JSON on the standard input of a shell command.
import { spawn } from "node:child_process"

const commands = { /* filled in by gitledger hooks install */ }
const once = Symbol.for("gitledger.opencode")

// What a command printed and how it ended; never throws, and a command that does not start is one that failed.
const call = (event, payload, limit) =>
  new Promise((done) => {
    let out = "", err = ""
    const child = spawn("/bin/sh", ["-c", commands[event]], { cwd: payload.cwd, detached: true, stdio: "pipe" })
    // Its whole group: what the shell started holds the pipes, and whoever waits for their end waits for that.
    const late = () => {
      try {
        process.kill(-child.pid, "SIGKILL")
      } catch {} // it has ended
      end(-1)
    }
    const timer = setTimeout(late, limit)
    const end = (code) => (clearTimeout(timer), done({ code, out: out.trim(), err: err.trim() }))
    child.stdout.on("data", (data) => (out += data))
    child.stderr.on("data", (data) => (err += data))
    child.stdin.on("error", () => {})
    child.on("error", () => end(-1))
    child.on("close", end)
    child.stdin.end(JSON.stringify(payload))
  })

const text = (parts) =>
  (parts ?? []).filter((part) => part?.type === "text" && !part.synthetic).map((part) => part.text).join("\n")

export const GitledgerPlugin = async ({ client, directory }) => {
  const places = (globalThis[once] ??= new Set()) // one server may serve several folders
  if (places.has(directory)) return {} // installed for the user and for the project: one of them speaks
  places.add(directory)
  const sessions = new Map() // session id → why its next start happens, and the text that it was given
  const children = new Set() // sessions of subagents, which are not a person's
  const said = (id, more) => ({ session_id: id, cwd: directory, pid: process.pid, ...more })

  // The text is the same until the next start, because the system prompt is made anew for each request.
  const briefing = async (id) => {
    const known = sessions.get(id) ?? { source: "startup" }
    sessions.set(id, known)
    known.text ??= call("start", said(id, { source: known.source }), 35000).then((ran) => ran.out)
    return known.text
  }

  const answer = async (id) => {
    try {
      const { data } = await client.session.messages({ path: { id } })
      return text(data?.findLast((message) => message.info?.role === "assistant")?.parts)
    } catch {
      return ""
    }
  }

  return {
    event: async ({ event }) => {
      const id = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type === "session.created" && event.properties?.info?.parentID) children.add(id)
      if (!id || children.has(id)) return
      if (event.type === "session.idle") await call("turn", said(id, { answer: await answer(id) }), 15000)
      if (event.type === "session.compacted") {
        await call("compacted", said(id), 15000)
        sessions.set(id, { source: "compact" })
      }
    },
    "chat.message": async (input, output) => {
      if (children.has(input.sessionID)) return
      await briefing(input.sessionID)
      await call("prompt", said(input.sessionID, { prompt: text(output.parts) }), 15000)
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!input.sessionID || children.has(input.sessionID)) return
      const given = await briefing(input.sessionID)
      if (given) output.system.push(given)
    },
    "tool.execute.after": async (input, output) => {
      if (children.has(input.sessionID)) return
      const args = input.args ?? {}
      const shell = input.tool === "bash" && typeof args.command === "string"
      const exit = output?.metadata?.exit ?? output?.metadata?.exitCode
      const commands = shell ? [{ command: args.command, exit, output: String(output?.output ?? "") }] : []
      const written = ["edit", "write", "patch", "multiedit"].includes(input.tool) && typeof args.filePath === "string"
      await call("tool", said(input.sessionID, { tool: input.tool, commands, files: written ? [args.filePath] : [] }), 15000)
    },
    "experimental.session.compacting": async (input, output) => {
      if (children.has(input.sessionID)) return
      const ran = await call("compact", said(input.sessionID, { trigger: "auto" }), 60000)
      if (ran.code !== 0) throw new Error(ran.err || "gitledger: BLOCKED_MISSING_PREREQUISITE: the hook did not run")
      if (ran.out) output.context.push(ran.out)
    },
    dispose: async () => {
      places.delete(directory)
      for (const id of sessions.keys()) await call("end", said(id, { reason: "exit" }), 15000)
    },
  }
}
