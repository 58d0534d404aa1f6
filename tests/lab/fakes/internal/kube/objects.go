// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kube

import (
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
)

// Meta is the metadata that is read here.
type Meta struct {
	Name              string            `json:"name"`
	Namespace         string            `json:"namespace"`
	UID               string            `json:"uid"`
	Annotations       map[string]string `json:"annotations"`
	Labels            map[string]string `json:"labels"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
}

// Resources are amounts by the name of the resource.
type Resources map[string]Quantity

// Container is one of spec.containers; init containers are not read, as the original does not.
type Container struct {
	Name      string `json:"name"`
	Resources struct {
		Limits Resources `json:"limits"`
	} `json:"resources"`
}

// Pod is the part of a pod that is read here.
type Pod struct {
	Metadata Meta `json:"metadata"`
	Spec     struct {
		NodeName   string      `json:"nodeName"`
		Containers []Container `json:"containers"`
	} `json:"spec"`
	Status struct {
		Phase string `json:"phase"`
	} `json:"status"`
}

// String is namespace/name.
func (p Pod) String() string { return p.Metadata.Namespace + "/" + p.Metadata.Name }

// Node is the part of a node that is read here.
type Node struct {
	Metadata Meta `json:"metadata"`
	Status   struct {
		Capacity    Resources `json:"capacity"`
		Allocatable Resources `json:"allocatable"`
	} `json:"status"`
}

// Quantity is an amount of a resource, rounded up to a whole number as Kubernetes' Quantity.Value() does.
type Quantity int64

var scales = map[string]*big.Rat{
	"": big.NewRat(1, 1), "n": big.NewRat(1, 1e9), "u": big.NewRat(1, 1e6), "m": big.NewRat(1, 1e3),
	"k": big.NewRat(1e3, 1), "M": big.NewRat(1e6, 1), "G": big.NewRat(1e9, 1), "T": big.NewRat(1e12, 1),
	"P": big.NewRat(1e15, 1), "E": big.NewRat(1e18, 1),
	"Ki": big.NewRat(1<<10, 1), "Mi": big.NewRat(1<<20, 1), "Gi": big.NewRat(1<<30, 1), "Ti": big.NewRat(1<<40, 1),
	"Pi": big.NewRat(1<<50, 1), "Ei": big.NewRat(1<<60, 1),
}

// UnmarshalJSON reads every spelling that the API server writes: 80000 units of memory come as "80k".
func (q *Quantity) UnmarshalJSON(content []byte) error {
	text := string(content)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(content, &text); err != nil {
			return err
		}
	}
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("+-.0123456789", r) })
	if end < 0 {
		end = len(text)
	}
	number, scale := text[:end], scales[text[end:]]
	if scale == nil { // an exponent: 8e4
		number, scale = text, scales[""]
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok {
		return fmt.Errorf("%q is not a quantity", text)
	}
	*q = roundUp(value.Mul(value, scale))
	return nil
}

func roundUp(value *big.Rat) Quantity {
	whole, rest := new(big.Int).DivMod(value.Num(), value.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		whole.Add(whole, big.NewInt(1))
	}
	if !whole.IsInt64() {
		return math.MaxInt64
	}
	return Quantity(whole.Int64())
}
