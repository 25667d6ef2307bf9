// Written by gitledger (gitledger hooks install); taken away by gitledger hooks uninstall. Changes here are lost.
// pi's events, each handed to gitledger as JSON on the standard input of a shell command.
import { spawn } from "node:child_process"

const commands: Record<string, string> = { /* filled in by gitledger hooks install */ }
const once = Symbol.for("gitledger.pi")

type Ran = { code: number | null; out: string; err: string }

// What a command printed and how it ended; never throws, and a command that does not start is one that failed.
const call = (event: string, payload: any, limit: number): Promise<Ran> =>
  new Promise((done) => {
    let out = "", err = ""
    const child = spawn("/bin/sh", ["-c", commands[event]], { cwd: payload.cwd, detached: true, stdio: "pipe" })
    // Its whole group: what the shell started holds the pipes, and whoever waits for their end waits for that.
    const late = () => {
      try {
        process.kill(-child.pid!, "SIGKILL")
      } catch {} // it has ended
      end(-1)
    }
    const timer = setTimeout(late, limit)
    const end = (code: number | null) => (clearTimeout(timer), done({ code, out: out.trim(), err: err.trim() }))
    child.stdout.on("data", (data: any) => (out += data))
    child.stderr.on("data", (data: any) => (err += data))
    child.stdin.on("error", () => {})
    child.on("error", () => end(-1))
    child.on("close", end)
    child.stdin.end(JSON.stringify(payload))
  })

const text = (content: any): string =>
  typeof content === "string"
    ? content
    : (content ?? []).filter((part: any) => part?.type === "text").map((part: any) => part.text).join("\n")

export default function (pi: any) {
  const shared = globalThis as any
  if (shared[once]) return // installed for the user and for the project: one of them speaks
  shared[once] = true
  let source = "startup"
  let given: string | undefined // the text of this start, the same in each system prompt until the next one

  const said = (ctx: any, more: object) => {
    const manager = ctx?.sessionManager
    return {
      session_id: manager?.getSessionId?.() ?? manager?.getSessionFile?.() ?? "",
      transcript: manager?.getSessionFile?.(),
      cwd: ctx?.cwd ?? process.cwd(),
      pid: process.pid,
      ...more,
    }
  }
  const shown = (ctx: any, what: string) => {
    try {
      ctx?.hasUI ? ctx.ui.notify(what, "error") : console.error(what)
    } catch {
      console.error(what)
    }
  }

  pi.on("session_start", async (e: any) => {
    source = e.reason ?? "startup"
    given = undefined
  })
  pi.on("before_agent_start", async (e: any, ctx: any) => {
    if (given === undefined) given = (await call("start", said(ctx, { source }), 35000)).out
    await call("prompt", said(ctx, { prompt: String(e.prompt ?? "") }), 15000)
    return given ? { systemPrompt: `${e.systemPrompt}\n\n${given}` } : undefined
  })
  pi.on("tool_result", async (e: any, ctx: any) => {
    const input = e.input ?? {}
    const output = text(e.content)
    const shell = e.toolName === "bash" && typeof input.command === "string"
    const exit = e.details?.exitCode ?? (e.isError ? undefined : 0)
    const written = ["edit", "write"].includes(e.toolName) && !e.isError && typeof input.path === "string"
    await call("tool", said(ctx, {
      tool: e.toolName,
      commands: shell ? [{ command: input.command, exit, output }] : [],
      files: written ? [input.path] : [],
      errors: e.isError && output ? [output] : [],
    }), 15000)
  })
  pi.on("agent_end", async (e: any, ctx: any) => {
    const last = (e.messages ?? []).findLast((message: any) => message.role === "assistant")
    const usage = ctx?.getContextUsage?.()
    const count = (value: any) => (Number.isInteger(value) ? value : undefined)
    await call("turn", said(ctx, {
      answer: text(last?.content), used: count(usage?.tokens), limit: count(usage?.contextWindow),
    }), 15000)
  })
  pi.on("session_before_compact", async (e: any, ctx: any) => {
    const ran = await call("compact", said(ctx, { trigger: e.reason ?? "manual" }), 60000)
    if (ran.code === 0) return undefined
    // Only a returned value holds it up: an error that is thrown lets it go on.
    shown(ctx, ran.err || "gitledger: BLOCKED_MISSING_PREREQUISITE: the hook did not run")
    return { cancel: true }
  })
  pi.on("session_compact", async (_: any, ctx: any) => {
    await call("compacted", said(ctx, {}), 15000)
    source = "compact"
    given = undefined
  })
  pi.on("session_shutdown", async (e: any, ctx: any) => {
    delete shared[once]
    await call("end", said(ctx, { reason: e.reason ?? "exit" }), 15000)
  })
}
